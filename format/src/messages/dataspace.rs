//! The shape of a dataset or attribute (format specification 4.0, IV.A.2.b).

use h5live_model::{Dataspace, MAX_RANK, Shape, UNLIMITED};
use smallvec::SmallVec;

use super::{Message, MessageType};
use crate::{Fault, LibVer, Record, Result, Wire};

/// The dataspace message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DataspaceMessage {
    /// 1 or 2.
    pub version: u8,
    /// The shape.
    pub dataspace: Dataspace,
}

const MAX_PRESENT: u8 = 0x01;

impl DataspaceMessage {
    /// The message that a file of this profile holds.
    pub fn new(profile: LibVer, dataspace: Dataspace) -> Self {
        DataspaceMessage { version: Self::version_for(profile, &dataspace), dataspace }
    }

    /// The version in which a file of this profile holds `dataspace`.
    pub fn version_for(profile: LibVer, dataspace: &Dataspace) -> u8 {
        match (profile, dataspace) {
            (LibVer::Earliest, Dataspace::Scalar | Dataspace::Simple(_)) => 1,
            _ => 2,
        }
    }

    /// The version with which the body of a message begins.
    pub fn peek_version(body: &[u8]) -> Option<u8> {
        body.first().copied()
    }

    fn class(&self) -> u8 {
        match self.dataspace {
            Dataspace::Scalar => 0,
            Dataspace::Simple(_) => 1,
            Dataspace::Null => 2,
        }
    }
}

/// A list of extents, in which all ones mean no limit.
fn wire_extents(w: &mut impl Wire, field: &'static str, rank: usize, list: &mut SmallVec<[u64; 4]>) -> Result<()> {
    let ones = w.widths().length.max_value();
    list.resize(rank, 0);
    for extent in list {
        if *extent == UNLIMITED {
            *extent = ones;
        }
        w.length(field, extent)?;
        if *extent == ones {
            *extent = UNLIMITED;
        }
    }
    Ok(())
}

impl Record for DataspaceMessage {
    const NAME: &'static str = "dataspace";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let (mut dims, mut max) = match &self.dataspace {
            Dataspace::Simple(shape) => {
                (SmallVec::from(shape.dims()), shape.states_max_dims().then(|| shape.max_dims().into()))
            }
            _ => (SmallVec::new(), None),
        };
        w.version(1..=2, &mut self.version)?;
        let rank = usize::from(w.derived_u8("rank", u8::try_from(dims.len()).unwrap_or(u8::MAX))?);
        w.require("rank", rank <= MAX_RANK, rank as u64, "at most 32 dimensions")?;
        let flags = w.derived_u8("flags", if max.is_some() { MAX_PRESENT } else { 0 })?;
        let class = if self.version == 1 {
            let null = !w.is_decoding() && self.dataspace == Dataspace::Null;
            w.require("version", !null, 1, "null dataspaces need version 2")?;
            w.reserved(5)?;
            u8::from(rank > 0)
        } else {
            w.derived_u8("class", self.class())?
        };
        w.require("rank", rank == 0 || class == 1, rank as u64, "scalar and null dataspaces have no dimensions")?;
        wire_extents(w, "dimension", rank, &mut dims)?;
        if flags & MAX_PRESENT != 0 {
            wire_extents(w, "maximum dimension", rank, max.get_or_insert_default())?;
        }
        if !w.is_decoding() {
            return Ok(());
        }
        self.dataspace = match (class, max) {
            (0, _) => Dataspace::Scalar,
            (1, None) => Dataspace::Simple(Shape::fixed(&dims)),
            (1, Some(max)) => {
                let above = dims.iter().zip(&max).find(|(d, m)| d > m).map_or(0, |(d, _)| *d);
                let fault = Fault::InvalidValue { found: above, rule: "no dimension is above its maximum" };
                Dataspace::Simple(Shape::with_max(&dims, &max).ok_or_else(|| w.fault("dimension", fault))?)
            }
            (2, _) => Dataspace::Null,
            (found, _) => {
                let rule = "a class is 0 (scalar), 1 (simple) or 2 (null)";
                return Err(w.fault("class", Fault::InvalidValue { found: found.into(), rule }));
            }
        };
        Ok(())
    }
}

impl Message for DataspaceMessage {
    const TYPE: MessageType = MessageType::DATASPACE;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Width, Widths, decode, encode};

    #[test]
    fn comes_back_from_bytes() {
        let spaces = [
            Dataspace::Null,
            Dataspace::Scalar,
            Dataspace::Simple(Shape::fixed(&[3, 0, 5])),
            Dataspace::Simple(Shape::with_max(&[3, 4], &[UNLIMITED, 4]).unwrap()),
        ];
        for length in [Width::TWO, Width::FOUR, Width::EIGHT] {
            let widths = Widths { offset: Width::EIGHT, length };
            for space in &spaces {
                for profile in LibVer::ALL {
                    let message = DataspaceMessage::new(profile, space.clone());
                    let bytes = encode(&message, widths).unwrap();
                    assert_eq!(decode::<DataspaceMessage>(&bytes, widths).unwrap(), message);
                }
            }
        }
    }

    #[test]
    fn refuses_a_dimension_above_its_maximum() {
        let shape = Shape::with_max(&[3], &[4]).unwrap();
        let mut bytes =
            encode(&DataspaceMessage { version: 2, dataspace: Dataspace::Simple(shape) }, Widths::default()).unwrap();
        bytes[4] = 5;
        let error = decode::<DataspaceMessage>(&bytes, Widths::default()).unwrap_err();
        assert!(matches!(error.fault, Fault::InvalidValue { found: 5, .. }), "{error}");
    }

    #[test]
    fn cannot_write_a_null_dataspace_in_version_1() {
        let message = DataspaceMessage { version: 1, dataspace: Dataspace::Null };
        assert!(encode(&message, Widths::default()).is_err());
    }
}
