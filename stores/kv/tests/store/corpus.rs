//! Real objects, where there are some: `H5LIVE_SHARED`, else `shared` beside the repository or in it, with a folder `corpus`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use h5live_kv::layout::encode::STORED_VLEN_AND_REFERENCE_SIZES;
use h5live_kv::layout::{AttributeRecords, MetadataRecords};
use h5live_model::{
    AttributeData, DatasetSpec, FillValue, LinkTarget, MapSpec, Mode, ObjectId, ObjectKindSpec, ObjectSpec, Store,
    VlenAndReferenceSizes,
};
use h5live_native::{NativeFile, OpenOptions};

/// An object as a container has it: elements that lead elsewhere have other sizes. Their bytes are not compared.
fn in_container(spec: ObjectSpec, forms: VlenAndReferenceSizes) -> ObjectSpec {
    let body = match spec.body {
        ObjectKindSpec::Dataset(dataset) => {
            let datatype = dataset.datatype.with_vlen_and_reference_sizes(forms, STORED_VLEN_AND_REFERENCE_SIZES);
            let mut fill = dataset.fill.clone();
            if let FillValue::Value(bytes) = &mut fill.value {
                bytes.resize(datatype.size() as usize, 7);
            }
            ObjectKindSpec::Dataset(Box::new(DatasetSpec { datatype, fill, ..*dataset }))
        }
        ObjectKindSpec::Datatype(datatype) => {
            ObjectKindSpec::Datatype(datatype.with_vlen_and_reference_sizes(forms, STORED_VLEN_AND_REFERENCE_SIZES))
        }
        ObjectKindSpec::Map(map) => {
            let form = |datatype: &h5live_model::Datatype| {
                datatype.with_vlen_and_reference_sizes(forms, STORED_VLEN_AND_REFERENCE_SIZES)
            };
            ObjectKindSpec::Map(Box::new(MapSpec { key_type: form(&map.key_type), value_type: form(&map.value_type) }))
        }
        group @ ObjectKindSpec::Group(_) => group,
    };
    ObjectSpec { body, ..spec }
}

fn attribute_in_container(attribute: AttributeData, forms: VlenAndReferenceSizes) -> AttributeData {
    let datatype = attribute.datatype.with_vlen_and_reference_sizes(forms, STORED_VLEN_AND_REFERENCE_SIZES);
    let mut value = attribute.value;
    let bytes = attribute.dataspace.element_count().unwrap() * u64::from(datatype.size());
    value.resize(bytes as usize, 7);
    AttributeData { datatype, value, ..attribute }
}

/// Compares all objects of a store with what comes back from their records. Returns their number, and that of attributes.
fn compare(path: &Path, store: &dyn Store) -> (usize, usize) {
    let forms = store.session().vlen_and_reference_sizes;
    let (mut left, mut seen, mut attributes) = (vec![store.session().root], HashSet::new(), 0);
    while let Some(id) = left.pop() {
        if !seen.insert(id) {
            continue;
        }
        let (Ok(kind), Ok(spec)) = (store.kind(id), store.spec(id)) else { continue };
        let spec = in_container(spec, forms);
        let records =
            MetadataRecords::of_object(&spec).unwrap_or_else(|e| panic!("{}: {id}: {e}: {spec:?}", path.display()));
        assert_eq!(records.decode_object_spec(kind).unwrap(), spec, "{}: {id}", path.display());
        let mut found = Vec::new();
        let _ = store.for_each_attribute(id, &mut |attribute| {
            found.push(attribute);
            true
        });
        for attribute in found {
            attributes += 1;
            let attribute = attribute_in_container(attribute, forms);
            let records = AttributeRecords::of_attribute(&attribute).unwrap();
            let again = records.decode_attribute(attribute.name.clone()).unwrap();
            let space = (again.dataspace.dims().to_vec(), again.dataspace.max_dims().to_vec());
            assert_eq!(space, (attribute.dataspace.dims().to_vec(), attribute.dataspace.max_dims().to_vec()));
            assert_eq!(AttributeData { dataspace: attribute.dataspace.clone(), ..again }, attribute);
        }
        let _ = store.for_each_link(id, &mut |link| {
            if let LinkTarget::Hard(target) = link.target {
                left.push(target);
            }
            true
        });
    }
    (seen.len(), attributes)
}

#[test]
fn objects_of_real_files_come_back_from_their_records() {
    let Some(corpus) = h5live_test_support::corpus() else { return };
    let is_malformed = |path: &PathBuf| path.iter().any(|part| part == "malformed");
    let paths = h5live_test_support::files_below(&corpus).into_iter().filter(|path| !is_malformed(path));
    let paths: Vec<_> = paths.collect();
    let (mut opened, mut objects, mut attributes) = (0, 0, 0);
    for path in paths {
        let options = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
        let Ok(file) = NativeFile::open(&path, &options) else { continue };
        let (of_file, with) = compare(&path, &file);
        (opened, objects, attributes) = (opened + 1, objects + of_file, attributes + with);
    }
    println!("{opened} files, {objects} objects, {attributes} attributes");
    assert!(opened > 100, "{opened}");
}

/// An identity is a number that every store may use as it likes.
#[test]
fn identities_of_other_stores_are_kept() {
    let dataset = DatasetSpec { committed_datatype: Some(ObjectId(u128::MAX)), ..DatasetSpec::default() };
    let spec: ObjectSpec = dataset.into();
    assert_eq!(
        MetadataRecords::of_object(&spec).unwrap().decode_object_spec(h5live_model::ObjectKind::Dataset).unwrap(),
        spec
    );
}
