//! Work that blocks: a component has one thread, and nobody else on it.

pub(crate) async fn blocking<T>(work: impl FnOnce() -> T) -> T {
    work()
}
