//! The program in the component.

#[cfg(target_os = "wasi")]
fn main() -> std::process::ExitCode {
    windlass_files::run()
}

#[cfg(not(target_os = "wasi"))]
fn main() {
    println!("this is the inside of a component: the build script of windlass-wasm builds it for wasm32-wasip2");
}
