//! Files in the layouts of the programs that people use: netCDF4, h5netcdf, pandas, anndata, MATLAB's format. These
//! programs take them for their own.
//!
//! Needs the Python that `H5LIVE_PYTHON` names, with these packages; without it the tests say that they are skipped.

use std::path::Path;
use std::process::Command;

use h5live::model::{
    CharacterSet, CreationOrder, FixedStringType, GroupSpec, LinkOrAttributeStorageSpec, ObjectSpec, StringPadding,
};
use h5live::{Dataset, Datatype, File, FixedStr, Group, H5Type, Object, Options, Result};

/// Runs a Python program on a file, if the packages that it imports are there. What it prints is to be `want`.
#[track_caller]
fn takes(packages: &str, program: &str, path: &Path, want: &str) {
    let Some(python) = h5live_test_support::python() else { return };
    let run = |program: &str| Command::new(&python).args(["-W", "ignore", "-c", program]).arg(path).output().unwrap();
    if !run(&format!("import {packages}")).status.success() {
        return println!("skipped: there is no {packages}");
    }
    let output = run(&format!("import sys, {packages}\npath = sys.argv[1]\n{program}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), want);
}

/// Sets an attribute of a fixed string.
fn text(object: &Object, name: &str, text: &str) -> Result<()> {
    let size = u32::try_from(text.len()).unwrap().max(1);
    let (padding, character_set) = (StringPadding::NullPadded, CharacterSet::Utf8);
    let datatype = Datatype::String(FixedStringType { size, padding, character_set });
    let builder = match object {
        Object::Group(group) => group.new_attribute(name),
        Object::Dataset(dataset) => dataset.new_attribute(name),
        _ => panic!("{object:?}"),
    };
    builder.datatype(datatype).write(&[text.to_owned()])
}

fn tracked() -> ObjectSpec {
    let kept = LinkOrAttributeStorageSpec { order: CreationOrder::Indexed, ..LinkOrAttributeStorageSpec::default() };
    ObjectSpec { attribute_storage: kept, ..GroupSpec { link_storage: kept }.into() }
}

fn weather(path: &Path) -> Result<()> {
    let file = Options::default().create().root(tracked()).open(path)?;
    let kept = LinkOrAttributeStorageSpec { order: CreationOrder::Indexed, ..LinkOrAttributeStorageSpec::default() };
    let time = file.new_dataset::<f64>().unlimited_rows(&[]).attribute_storage(kept).create("time")?;
    time.append(&[0.0, 1.0])?;
    let x = file.new_dataset::<i32>().shape(&[3]).attribute_storage(kept).create_with_data("x", &[10, 20, 30])?;
    for (id, scale) in [(0i32, &time), (1, &x)] {
        scale.make_scale(Some(scale.path().trim_start_matches('/')))?;
        scale.set_attribute("_Netcdf4Dimid", &id)?;
    }
    let data =
        file.new_dataset::<f32>().unlimited_rows(&[3]).deflate(4).attribute_storage(kept).create("temperature")?;
    data.append(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    data.attach_scale(0, &time)?;
    data.attach_scale(1, &x)?;
    text(&Object::Dataset(data), "units", "K")?;
    file.close()
}

#[test]
fn netcdf_opens_and_appends_to_our_dimension_scales() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weather.nc");
    weather(&path).unwrap();
    let program = r#"
with netCDF4.Dataset(path, "a") as file:
    data = file["temperature"]
    print(data.dimensions, data.units, data[:].tolist(), file.dimensions["time"].isunlimited(), file["x"][:].tolist())
    file["time"][2] = 2.5
    data[2] = [7, 8, 9]
    file.createVariable("pressure", "f8", ("time",))[:] = [100, 200, 300]
with netCDF4.Dataset(path) as file:
    print(file["temperature"][2].tolist(), file["pressure"][:].tolist(), list(file.variables))
"#;
    let want = "\
('time', 'x') K [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]] True [10, 20, 30]
[7.0, 8.0, 9.0] [100.0, 200.0, 300.0] ['time', 'x', 'temperature', 'pressure']
";
    takes("netCDF4", program, &path, want);
}

#[test]
fn h5netcdf_reads_and_appends_to_our_dimension_scales() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weather.nc");
    weather(&path).unwrap();
    let program = r#"
with h5netcdf.File(path, "a") as file:
    data = file["temperature"]
    print(data.dimensions, data[:].tolist(), file.dimensions["time"].isunlimited())
    file.resize_dimension("time", 3)
    file["time"][2] = 2.5
    data[2] = [7, 8, 9]
    file.create_variable("pressure", ("time",), "f8")[:] = [100, 200, 300]
with h5netcdf.File(path) as file:
    print(file["temperature"][2].tolist(), file["pressure"][:].tolist(), list(file.variables))
"#;
    let want = "\
('time', 'x') [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]] True
[7.0, 8.0, 9.0] [100.0, 200.0, 300.0] ['time', 'x', 'temperature', 'pressure']
";
    takes("h5netcdf", program, &path, want);
    let file = File::open(&path).unwrap();
    if file.root().contains("pressure").unwrap() {
        assert_eq!(file.dataset("temperature").unwrap().shape().unwrap(), [3, 3]);
        assert_eq!(file.dataset("pressure").unwrap().read::<f64>().unwrap(), [100.0, 200.0, 300.0]);
    }
}

#[test]
fn we_append_to_what_netcdf_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.nc");
    let program = r#"
with netCDF4.Dataset(path, "w") as file:
    file.createDimension("time", None)
    file.createDimension("x", 2)
    file.createVariable("time", "f8", ("time",))[:] = [0, 1]
    file.createVariable("data", "i4", ("time", "x"), compression="zlib")[:] = [[1, 2], [3, 4]]
"#;
    takes("netCDF4", program, &path, "");
    if !path.exists() {
        return;
    }
    let file = Options::default().write().open(&path).unwrap();
    file.dataset("time").unwrap().append(&[2.0]).unwrap();
    let data = file.dataset("data").unwrap();
    assert_eq!(data.scales(0).unwrap()[0].id(), file.dataset("time").unwrap().id());
    data.append(&[5, 6]).unwrap();
    data.set_attribute("units", &"m".to_owned()).unwrap();
    file.close().unwrap();
    let program = r#"
with netCDF4.Dataset(path) as file:
    print(file["data"][:].tolist(), file["data"].units, file["time"][:].tolist())
"#;
    takes("netCDF4", program, &path, "[[1, 2], [3, 4], [5, 6]] m [0.0, 1.0, 2.0]\n");
}

fn node(object: &Object, class: &str, version: &str) -> Result<()> {
    text(object, "CLASS", class)?;
    text(object, "TITLE", "")?;
    text(object, "VERSION", version)
}

fn array(dataset: Dataset, kind: Option<&str>) -> Result<()> {
    dataset.set_attribute("transposed", &1u8)?;
    let object = Object::Dataset(dataset);
    node(&object, "ARRAY", "2.4")?;
    text(&object, "FLAVOR", "numpy")?;
    if let Some(kind) = kind {
        text(&object, "kind", kind)?;
        text(&object, "name", "N.")?;
    }
    Ok(())
}

fn frame(path: &Path) -> Result<()> {
    let file = File::create(path)?;
    let root = file.object("/")?;
    node(&root, "GROUP", "1.0")?;
    text(&root, "PYTABLES_FORMAT_VERSION", "2.1")?;
    let group = file.create_group("frame")?;
    let object = Object::Group(group.clone());
    node(&object, "GROUP", "1.0")?;
    let texts = [("pandas_type", "frame"), ("pandas_version", "0.15.2"), ("encoding", "UTF-8"), ("errors", "strict")];
    texts.iter().try_for_each(|(name, value)| text(&object, name, value))?;
    ["axis0_variety", "axis1_variety", "block0_items_variety"]
        .iter()
        .try_for_each(|name| text(&object, name, "regular"))?;
    group.set_attribute("ndim", &2i64)?;
    group.set_attribute("nblocks", &1i64)?;
    let names = ["a", "b"].map(|name| FixedStr::<1>::new(name).unwrap());
    for name in ["axis0", "block0_items"] {
        let bytes = Datatype::fixed_string(1, CharacterSet::Ascii);
        let dataset = group.new_dataset_with_type(bytes).create_with_data(name, &names)?;
        array(dataset, Some("string"))?;
    }
    array(group.new_dataset::<i64>().create_with_data("axis1", &[0i64, 1, 2])?, Some("integer"))?;
    let values = group.new_dataset::<f64>().shape(&[3, 2]).create("block0_values")?;
    values.write(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.5])?;
    array(values, None)?;
    file.close()
}

#[test]
fn pandas_and_pytables_read_our_frames() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frame.h5");
    frame(&path).unwrap();
    let program = r#"
frame = pandas.read_hdf(path, "frame")
print(list(frame.columns), frame.index.tolist(), frame.to_numpy().tolist())
with tables.open_file(path, "a") as file:
    print([node._v_name for node in file.list_nodes("/frame")], file.root.frame.block0_values[2].tolist())
    file.create_array("/frame", "more", [1, 2, 3])
"#;
    let want = "\
['a', 'b'] [0, 1, 2] [[1.0, 2.0], [3.0, 4.0], [5.0, 6.5]]
['axis0', 'axis1', 'block0_items', 'block0_values'] [5.0, 6.5]
";
    takes("pandas, tables", program, &path, want);
}

fn encoded(object: &Object, kind: &str, version: &str) -> Result<()> {
    let set = |name, value: &str| match object {
        Object::Group(group) => group.set_attribute(name, &value.to_owned()),
        Object::Dataset(dataset) => dataset.set_attribute(name, &value.to_owned()),
        _ => panic!("{object:?}"),
    };
    set("encoding-type", kind)?;
    set("encoding-version", version)
}

fn index(group: &Group, names: &[&str], columns: &[String]) -> Result<()> {
    encoded(&Object::Group(group.clone()), "dataframe", "0.2.0")?;
    group.set_attribute("_index", &"_index".to_owned())?;
    group.set_attribute_array("column-order", columns, &[columns.len() as u64])?;
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    encoded(
        &Object::Dataset(group.new_dataset::<String>().create_with_data("_index", &names)?),
        "string-array",
        "0.2.0",
    )
}

fn cells(path: &Path) -> Result<()> {
    let file = File::create(path)?;
    encoded(&file.object("/")?, "anndata", "0.1.0")?;
    let x = file.new_dataset::<f32>().shape(&[2, 3]).deflate(4).create("X")?;
    x.write(&[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0])?;
    encoded(&Object::Dataset(x), "array", "0.2.0")?;
    let obs = file.create_group("obs")?;
    index(&obs, &["c1", "c2"], &["n".to_owned()])?;
    encoded(&Object::Dataset(obs.new_dataset::<i64>().create_with_data("n", &[7i64, 8])?), "array", "0.2.0")?;
    index(&file.create_group("var")?, &["g1", "g2", "g3"], &[])?;
    for name in ["layers", "obsm", "obsp", "uns", "varm", "varp"] {
        encoded(&Object::Group(file.create_group(name)?), "dict", "0.1.0")?;
    }
    file.close()
}

#[test]
fn anndata_reads_our_cells() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cells.h5ad");
    cells(&path).unwrap();
    let program = r#"
cells = anndata.read_h5ad(path)
print(cells.X.tolist(), cells.obs["n"].tolist(), list(cells.obs_names), list(cells.var_names))
"#;
    takes("anndata", program, &path, "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] [7, 8] ['c1', 'c2'] ['g1', 'g2', 'g3']\n");
}

#[test]
fn hdf5storage_loads_our_matlab_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("matrix.mat");
    let title = format!("{:116}", "MATLAB 7.3 MAT-file, Platform: h5live, HDF5 schema 1.00 .");
    let header = [title.as_bytes(), &[0; 8], &[0, 2, b'I', b'M']].concat();
    let file = Options::default().create().user_block(&header).open(&path).unwrap();
    // MATLAB keeps columns together.
    let matrix = file.new_dataset::<f64>().shape(&[3, 2]).create("matrix").unwrap();
    matrix.write(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]).unwrap();
    text(&Object::Dataset(matrix), "MATLAB_class", "double").unwrap();
    let units: Vec<u16> = "volt".encode_utf16().collect();
    let name = file.new_dataset::<u16>().shape(&[4, 1]).create("name").unwrap();
    name.write(&units).unwrap();
    name.set_attribute("MATLAB_int_decode", &2i32).unwrap();
    text(&Object::Dataset(name), "MATLAB_class", "char").unwrap();
    file.close().unwrap();
    let program = r#"
found = hdf5storage.loadmat(path)
print(found["matrix"].tolist(), str(found["name"].flatten()[0] if found["name"].size == 1 else "".join(found["name"].flatten())))
"#;
    takes("hdf5storage", program, &path, "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]] volt\n");
    assert_eq!(u16::datatype(), File::open(&path).unwrap().dataset("name").unwrap().datatype().unwrap());
}
