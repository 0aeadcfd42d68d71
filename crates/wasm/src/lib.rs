//! Tools as WebAssembly components: nothing ambient, capabilities by manifest.
