//! A wall around processes: namespaces, Landlock, seccomp, limits, and an honest account of which of them stand.
