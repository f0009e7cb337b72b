//! libhdf5, once loaded, is to find the system calls that the program defines.

fn main() {
    println!("cargo:rustc-link-arg-bins=-rdynamic");
}
