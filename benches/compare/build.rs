//! Exports libhdf5, which is linked in statically, to the filters that it loads. Nothing else: they bring codecs of
//! their own, which ours must not take the place of.

use std::path::PathBuf;
use std::{env, fs};

fn main() -> std::io::Result<()> {
    let list = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("exported");
    fs::write(&list, "{ H5*; };\n")?;
    println!("cargo::rustc-link-arg-bins=-Wl,--dynamic-list={}", list.display());
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
