//! Commands of the user that look at what an agent does: told by JSON, answered by JSON or exit code.
