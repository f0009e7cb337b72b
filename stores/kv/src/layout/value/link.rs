//! The targets of links.

use h5live_model::{LinkTarget, Name};

use crate::layout::{RecordFormatError, Result, oid};

/// The classes of links (`H5L_type_t`). The connector has the first two.
const HARD: u8 = 0;
const SOFT: u8 = 1;
const EXTERNAL: u8 = 64;

/// Version and flags of an external link's target.
const EXTERNAL_VERSION: u8 = 0;

fn invalid(rule: &'static str) -> RecordFormatError {
    RecordFormatError::InvalidValue { record: "Link", rule }
}

/// The value of a link: its class, then the identity of the object, the path, or the target of another class.
///
/// # Errors
/// [`RecordFormatError::InvalidValue`] for a name in an external link that has a NUL, and for a link of a class that its user does not
/// have.
pub fn encode_link_target(target: &LinkTarget) -> Result<Vec<u8>> {
    Ok(match target {
        LinkTarget::Hard(id) => [&[HARD][..], &oid::token(*id)].concat(),
        LinkTarget::Soft(path) => [&[SOFT], path.as_bytes()].concat(),
        LinkTarget::External { file, path } => {
            if [file, path].iter().any(|name| name.as_bytes().contains(&0)) {
                return Err(invalid("a name in an external link has no NUL"));
            }
            [&[EXTERNAL, EXTERNAL_VERSION], file.as_bytes(), &[0], path.as_bytes(), &[0]].concat()
        }
        LinkTarget::UserDefined { class, data } if *class > EXTERNAL => [&[*class], &data[..]].concat(),
        LinkTarget::UserDefined { .. } => return Err(invalid("links of users are of the classes 65 to 255")),
    })
}

/// The target of a link.
///
/// # Errors
/// [`RecordFormatError::InvalidValue`].
pub fn decode_link_target(value: &[u8]) -> Result<LinkTarget> {
    let (class, target) = value.split_first().ok_or_else(|| invalid("it begins with a class"))?;
    match *class {
        HARD => {
            let token = target.try_into().map_err(|_| invalid("a hard link has an identity of 16 bytes"))?;
            Ok(LinkTarget::Hard(oid::from_token(token)))
        }
        SOFT => Ok(LinkTarget::Soft(Name::from(target))),
        EXTERNAL => decode_external(target).ok_or_else(|| invalid("an external link has a version 0 and two names")),
        class if class > EXTERNAL => Ok(LinkTarget::UserDefined { class, data: target.to_vec() }),
        _ => Err(invalid("a class is 0 (hard), 1 (soft), 64 (external) or one of a user")),
    }
}

/// A file's name and a path, a NUL after each.
fn decode_external(target: &[u8]) -> Option<LinkTarget> {
    let names = target.strip_prefix(&[EXTERNAL_VERSION])?.strip_suffix(&[0])?;
    let mut names = names.split(|byte| *byte == 0);
    let (file, path) = (names.next()?, names.next()?);
    let external = LinkTarget::External { file: file.into(), path: path.into() };
    names.next().is_none().then_some(external)
}
