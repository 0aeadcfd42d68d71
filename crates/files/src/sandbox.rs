//! Walls are for processes, and a component starts none.

#[derive(Debug, Default)]
pub struct Wall;
