//! Many pieces of one dataset: its sources, its columns.

use h5live::model::{Datatype, EnumMember, EnumType, VirtualSource};
use h5live::{File, H5Type, Selection, Value};

use crate::axes::Outcome;
use crate::phases::Phases;

/// Sources of a virtual dataset: datasets of the same file.
pub fn sources(phases: &mut Phases, count: u64) -> Outcome {
    let path = phases.path("sources.h5");
    let file = File::create(&path)?;
    let sources: Vec<VirtualSource> = (0..count)
        .map(|n| VirtualSource {
            file: ".".into(),
            dataset: format!("s/{n}").into(),
            source: Selection::All,
            target: Selection::block(&[n * 16], &[16]),
        })
        .collect();
    phases.phase("create", count, || {
        (0..count).try_for_each(|n| {
            file.new_dataset::<u64>().shape(&[16]).create(&format!("s/{n}")).and_then(|dataset| dataset.write(&[n; 16]))
        })?;
        file.new_dataset::<u64>().shape(&[count * 16]).virtual_sources(sources).create("all")?;
        file.close()
    })?;
    let file = File::open(&path)?;
    let all = file.dataset("all")?;
    phases.phase("read whole", count, || all.read::<u64>())?;
    phases.phase("read each", count, || {
        (0..count).try_for_each(|n| all.read_slice::<u64>(n * 16..n * 16 + 16).map(drop))
    })?;
    Ok(())
}

/// Columns of a table, which is written and read whole.
pub fn columns(phases: &mut Phases, count: u64) -> Outcome {
    let file = File::create(phases.path("columns.h5"))?;
    let datatype = Datatype::compound((0..count).map(|n| (format!("column{n:06}"), u64::datatype())));
    let new = file.new_dataset_with_type(datatype).unlimited_rows(&[]).chunk_shape(&[16]);
    let table = phases.phase("create", count, || new.create("t"))?;
    let row = vec![7; count as usize * 8];
    phases.phase("append", count * 16, || (0..16).try_for_each(|_| table.append_raw(&row)))?;
    let mut rows = phases.phase("read", count * 16, || table.read_values(0..16))?;
    phases.phase("append values", count * 16, || table.append_values(&rows))?;
    for row in &mut rows {
        if let Value::Compound(members) = row {
            members.reverse();
        }
    }
    phases.phase("append in another order", count * 16, || table.append_values(&rows))?;
    phases.phase("close", count, || file.close())
}

/// Names of an enum, of which each is read, and converted to another enum.
pub fn enum_names(phases: &mut Phases, count: u64) -> Outcome {
    let file = File::create(phases.path("enum.h5"))?;
    let members = |step: u64| {
        (0..count)
            .map(|n| EnumMember { name: format!("name{n:06}").into(), value: (n * step).to_le_bytes().into() })
            .collect()
    };
    let of = |step| Datatype::Enum(EnumType { base: Box::new(u64::datatype()), members: members(step) });
    let names = phases.phase("create", count, || file.new_dataset_with_type(of(1)).shape(&[count]).create("e"))?;
    phases.phase("write", count, || {
        names.write_values(.., &(0..count).map(|n| Value::EnumName(format!("name{n:06}").into())).collect::<Vec<_>>())
    })?;
    phases.phase("read", count, || names.read_values(..))?;
    phases.phase("convert", count, || names.read_as(.., &of(2)))?;
    phases.phase("close", count, || file.close())
}
