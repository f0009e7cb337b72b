//! The two hands that change a file: h5live's, and h5py's in a process of its own.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use h5live::model::{CreationOrder, Layout, LinkOrAttributeStorageSpec, LinkTarget, Name};
use h5live::{Attribute, Dataset, File, FixedStr, Group, Object};

use crate::edits::{Catalog, Filter, Step};
use crate::values::{Element, Kind, Pair, contents, values};

/// Says what a hand could not do.
pub type Done = Result<(), String>;

fn failed(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text += &format!(": {source}");
        next = source.source();
    }
    text
}

/// Runs `$body` with `$element` as the Rust type of a kind.
macro_rules! with_kind {
    ($kind:expr, $element:ident, $body:expr) => {
        match $kind {
            Kind::I4 => {
                type $element = i32;
                $body
            }
            Kind::F8 => {
                type $element = f64;
                $body
            }
            Kind::S8 => {
                type $element = FixedStr<8>;
                $body
            }
            Kind::Text => {
                type $element = String;
                $body
            }
            Kind::Pair => {
                type $element = Pair;
                $body
            }
        }
    };
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').expect("paths begin at the root")
}

fn parent<'a>(file: &File, path: &'a str) -> h5live::Result<(Group, &'a str)> {
    let (group, name) = split(path);
    let group = if group.is_empty() { file.root() } else { file.group(group)? };
    Ok((group, name))
}

/// Takes one step with h5live.
pub fn take(file: &File, step: &Step) -> Done {
    if let Step::Move { from, to } = step {
        let ((from_group, from), (to_group, to)) =
            (parent(file, from).map_err(failed)?, parent(file, to).map_err(failed)?);
        let (from, to) = (Name::from(from), Name::from(to));
        return file.writer().unwrap().rename_link((from_group.id(), &from), (to_group.id(), &to)).map_err(failed);
    }
    take_step(file, step).map_err(failed)
}

fn take_step(file: &File, step: &Step) -> h5live::Result<()> {
    match step {
        Step::Group { path, ordered } => {
            let order = if *ordered { CreationOrder::Indexed } else { CreationOrder::Untracked };
            let new = file.root().new_group().link_order(order);
            new.attribute_storage(LinkOrAttributeStorageSpec { order, ..LinkOrAttributeStorageSpec::default() })
                .create(path)
                .map(drop)
        }
        Step::Dataset { path, kind, shape, max, chunk, filter } => with_kind!(kind, T, {
            let mut builder = file.new_dataset::<T>().shape(shape);
            if let Some(chunk) = chunk {
                builder = builder.max_shape(max).chunk_shape(chunk);
            }
            builder = match filter {
                Filter::None => builder,
                Filter::Deflate => builder.deflate(1),
                Filter::Shuffle => builder.shuffle(),
            };
            // Without a fill value of its own, what nobody wrote is for libhdf5 what something else left in the file.
            if *kind != Kind::Text {
                builder = builder.fill(T::of(if *kind == Kind::Pair { 0 } else { 7 }));
            }
            builder.create(path).map(drop)
        }),
        Step::Write { path, start, count, seed } => {
            let dataset = file.dataset(path)?;
            with_kind!(kind_of(&dataset)?, T, {
                let block = values::<T>(*seed, count.iter().product());
                dataset.write_slice(h5live::Selection::block(start, count), &block)
            })
        }
        Step::Resize { path, shape } => file.dataset(path)?.resize(shape),
        Step::Attribute { path, name, kind, count, seed } => with_kind!(kind, T, {
            let block = values::<T>(*seed, *count);
            match file.object(path)? {
                Object::Group(group) => group.set_attribute_array(name, &block, &[*count]),
                Object::Dataset(dataset) => dataset.set_attribute_array(name, &block, &[*count]),
                _ => panic!("nobody made anything else"),
            }
        }),
        Step::Unattribute { path, name } => match file.object(path)? {
            Object::Group(group) => group.remove_attribute(name),
            Object::Dataset(dataset) => dataset.remove_attribute(name),
            _ => panic!("nobody made anything else"),
        },
        Step::Remove { path } => {
            let (group, name) = parent(file, path)?;
            group.unlink(name)
        }
        Step::Move { .. } => Ok(()),
        Step::Soft { path, target } => {
            let (group, name) = parent(file, path)?;
            group.link_soft(name, target)
        }
        Step::External { path, file: other, target } => {
            let (group, name) = parent(file, path)?;
            group.link_external(name, other, target)
        }
        Step::Hard { path, target } => {
            let id = file.object(target)?.id();
            let (group, name) = parent(file, path)?;
            group.link_hard(name, id)
        }
    }
}

fn kind_from(datatype: &h5live::Datatype) -> Kind {
    use h5live::Datatype as D;
    match datatype {
        D::Integer(_) => Kind::I4,
        D::Float(_) => Kind::F8,
        D::String(_) => Kind::S8,
        D::VarLen(_) => Kind::Text,
        D::Compound(_) => Kind::Pair,
        other => panic!("nobody wrote {other:?}"),
    }
}

fn kind_of(dataset: &Dataset) -> h5live::Result<Kind> {
    Ok(kind_from(&dataset.datatype()?))
}

fn dims(dims: &[u64]) -> String {
    let dims = dims.iter().map(|n| if *n == h5live::UNLIMITED { "-".to_owned() } else { n.to_string() });
    let text = dims.collect::<Vec<_>>().join("x");
    if text.is_empty() { ".".to_owned() } else { text }
}

/// What a file holds, a line for each thing.
pub fn lines(file: &File) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    let root = file.root();
    attributes("", &root.attributes().map_err(failed)?, &mut out).map_err(failed)?;
    group("", &root, &mut BTreeSet::from([root.id()]), &mut out).map_err(failed)?;
    Ok(out)
}

fn attributes(path: &str, attributes: &[Attribute], out: &mut Vec<String>) -> h5live::Result<()> {
    let mut attributes: Vec<_> = attributes.iter().collect();
    attributes.sort_by(|a, b| a.name().cmp(b.name()));
    for attribute in attributes {
        let kind = kind_from(attribute.datatype());
        let contents = with_kind!(kind, T, contents(&attribute.read::<T>()?));
        let dims = dims(attribute.dataspace().dims());
        out.push(format!("{path}@{} {} {dims} {contents}", attribute.name(), kind.name()));
    }
    Ok(())
}

fn group(
    path: &str,
    from: &Group,
    seen: &mut BTreeSet<h5live::model::ObjectId>,
    out: &mut Vec<String>,
) -> h5live::Result<()> {
    let mut links = from.links()?;
    links.sort_by(|a, b| a.name.cmp(&b.name));
    for link in links {
        let below = format!("{path}/{}", link.name);
        let id = match &link.target {
            LinkTarget::Hard(id) => *id,
            LinkTarget::Soft(target) => {
                out.push(format!("{below} soft {target}"));
                continue;
            }
            LinkTarget::External { file, path } => {
                out.push(format!("{below} external {file} {path}"));
                continue;
            }
            other => panic!("nobody made {other:?}"),
        };
        match from.object_by_id(id, &link.name.to_string())? {
            Object::Group(found) => {
                out.push(format!("{below} links {}", found.info()?.hard_link_count));
                attributes(&below, &found.attributes()?, out)?;
                if seen.insert(id) {
                    group(&below, &found, seen, out)?;
                }
            }
            Object::Dataset(dataset) => {
                out.push(format!("{below} links {}", dataset.info()?.hard_link_count));
                attributes(&below, &dataset.attributes()?, out)?;
                let kind = kind_of(&dataset)?;
                let contents = with_kind!(kind, T, contents(&dataset.read::<T>()?));
                let (shape, max) = (dims(&dataset.shape()?), dims(&dataset.max_shape()?));
                out.push(format!("{below} dataset {} {shape} {max} {contents}", kind.name()));
            }
            // What is in it is compared elsewhere.
            Object::Map(_) => out.push(format!("{below} map")),
            _ => panic!("nobody made anything else"),
        }
    }
    Ok(())
}

/// The groups of a file whose links and attributes have an order of creation, with the names in that order.
pub fn orders(file: &File) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    let found = catalog(file)?;
    for path in found.groups.iter().filter(|path| !path.is_empty()) {
        let group = file.group(path).map_err(failed)?;
        let mut links = group.links().map_err(failed)?;
        links.sort_by_key(|link| link.creation_order);
        let in_order = links.iter().filter(|link| link.creation_order.is_some());
        out.push(format!("{path} {:?}", in_order.map(|link| link.name.to_string()).collect::<Vec<_>>()));
        let mut attributes = group.attributes().map_err(failed)?;
        attributes.sort_by_key(Attribute::creation_order);
        let in_order = attributes.iter().filter(|attribute| attribute.creation_order().is_some());
        out.push(format!("{path}@ {:?}", in_order.map(|one| one.name().to_string()).collect::<Vec<_>>()));
    }
    Ok(out)
}

/// What there is in a file, by its hard links; what is below a group only where it is first met.
pub fn catalog(file: &File) -> Result<Catalog, String> {
    let mut found = Catalog { groups: vec![String::new()], ..Catalog::default() };
    let mut seen = BTreeSet::from([file.root().id()]);
    let mut waiting = vec![(String::new(), file.root())];
    let attributes = |path: &str, names: Vec<Name>| {
        names.into_iter().map(|name| (path.to_owned(), name.to_string())).collect::<Vec<_>>()
    };
    while let Some((path, group)) = waiting.pop() {
        found.attributes.extend(attributes(&path, group.attribute_names().map_err(failed)?));
        let mut links = group.links().map_err(failed)?;
        links.sort_by(|a, b| a.name.cmp(&b.name));
        for link in links {
            let below = format!("{path}/{}", link.name);
            found.links.push(below.clone());
            let LinkTarget::Hard(id) = link.target else { continue };
            match group.object_by_id(id, &link.name.to_string()).map_err(failed)? {
                Object::Group(group) if seen.insert(id) => {
                    found.groups.push(below.clone());
                    waiting.push((below, group));
                }
                Object::Dataset(dataset) => {
                    found.attributes.extend(attributes(&below, dataset.attribute_names().map_err(failed)?));
                    let spec = dataset.spec().map_err(failed)?;
                    let (shape, max) = (spec.dataspace.dims().to_vec(), spec.dataspace.max_dims().to_vec());
                    found.datasets.push((below, shape, max, matches!(spec.layout, Layout::Chunked(_))));
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

/// h5py, in a process of its own.
pub struct H5py {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl H5py {
    /// `None`, with a line that says so, where there is no Python for it.
    pub fn start() -> Option<Self> {
        let python = h5live_test_support::python()?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/hand.py");
        let mut command = Command::new(python);
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("Python starts");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Some(H5py { child, input, output: BufReader::new(output) })
    }

    /// Has it take a step; what it prints, if all goes well.
    fn ask(&mut self, words: &[&str]) -> Result<Vec<String>, String> {
        writeln!(self.input, "{}", words.join("\t")).expect("it listens");
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).expect("it writes text") == 0 {
                return Err(format!("h5py died at {words:?}"));
            }
            match line.trim_end_matches('\n') {
                "ok" => return Ok(lines),
                line if line.starts_with("failed: ") => return Err(line.to_owned()),
                line => lines.push(line.to_owned()),
            }
        }
    }

    pub fn open(&mut self, path: &Path, mode: &str, low: &str) -> Done {
        self.ask(&["open", &path.to_string_lossy(), mode, low]).map(drop)
    }

    pub fn close(&mut self) -> Done {
        self.ask(&["close"]).map(drop)
    }

    pub fn lines(&mut self) -> Result<Vec<String>, String> {
        self.ask(&["dump"])
    }

    pub fn take(&mut self, step: &Step) -> Done {
        let words = match step {
            Step::Group { path, ordered } => vec!["group", path, if *ordered { "order" } else { "plain" }],
            Step::Dataset { path, kind, shape, max, chunk, filter } => {
                let filter = match filter {
                    Filter::None => "none",
                    Filter::Deflate => "gzip",
                    Filter::Shuffle => "shuffle",
                };
                let chunk = chunk.as_ref().map_or(".".to_owned(), |chunk| dims(chunk));
                return self.ask(&["dataset", path, kind.name(), &dims(shape), &dims(max), &chunk, filter]).map(drop);
            }
            Step::Write { path, start, count, seed } => {
                return self.ask(&["write", path, &dims(start), &dims(count), &seed.to_string()]).map(drop);
            }
            Step::Resize { path, shape } => return self.ask(&["resize", path, &dims(shape)]).map(drop),
            Step::Attribute { path, name, kind, count, seed } => {
                let (count, seed) = (count.to_string(), seed.to_string());
                return self.ask(&["attribute", path, name, kind.name(), &count, &seed]).map(drop);
            }
            Step::Unattribute { path, name } => vec!["unattribute", path, name],
            Step::Remove { path } => vec!["remove", path],
            Step::Move { from, to } => vec!["move", from, to],
            Step::Soft { path, target } => vec!["soft", path, target],
            Step::External { path, file, target } => vec!["external", path, file, target],
            Step::Hard { path, target } => vec!["hard", path, target],
        };
        self.ask(&words).map(drop)
    }
}

impl Drop for H5py {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
