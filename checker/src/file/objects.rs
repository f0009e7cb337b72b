//! Objects: what each is, and how many links lead to it.

use h5live_format::messages::{Comment, DatatypeMessage, MessageType, ModificationTime, OldModificationTime};
use h5live_format::{FirstHeaderChunk, Record};

use super::FindingCause;
use super::space_map::ObjectIndex;
use super::walk::FileWalk;

impl FileWalk<'_> {
    /// Visits an object.
    pub fn check_object(&mut self, owner: ObjectIndex) {
        let addr = self.objects.header_addr(owner);
        let Some(header) = self.check_object_header(addr) else {
            self.incomplete = true;
            return;
        };
        self.objects.set_stated_link_count(owner, header.stated_link_count());
        self.add_shared_uses_of_header(&header);
        self.check_attributes(&header);
        let group = header.has_message(MessageType::SYMBOL_TABLE) || header.has_message(MessageType::LINK_INFO);
        let dataset = header.has_message(MessageType::LAYOUT);
        if group && dataset {
            self.report(
                FirstHeaderChunk::NAME,
                addr,
                FindingCause::BrokenRule("an object is a group or a dataset, not both"),
            );
        }
        if group {
            self.check_group(owner, &header);
        } else if dataset || header.has_message(MessageType::DATASPACE) {
            self.check_dataset(&header);
        } else if header.has_message(MessageType::DATATYPE) {
            if let Some(message) = self.load_message::<DatatypeMessage>(&header) {
                self.check_datatype_uses_half_bits(&header, &message);
            }
        } else {
            self.report(FirstHeaderChunk::NAME, addr, FindingCause::Missing("message that tells what the object is"));
        }
        self.load_message::<Comment>(&header);
        self.load_message::<ModificationTime>(&header);
        self.load_message::<OldModificationTime>(&header);
    }

    /// Reports objects with more links than they state, and notes those with fewer.
    pub fn check_link_counts(&mut self) {
        for (owner, stated, links) in self.objects.wrong_link_counts() {
            if links < stated && (self.incomplete || self.report.has_max_findings()) {
                continue;
            }
            let cause = FindingCause::NumberMismatch { what: "hard links", stated: stated.into(), found: links.into() };
            if links > stated || self.options.reports_harmless_mismatches {
                self.report_or_note_if_live(owner, FirstHeaderChunk::NAME, self.objects.header_addr(owner), cause);
            } else {
                // From groups that only lead to each other, once the last link to them was removed.
                self.add_note_for(owner, FirstHeaderChunk::NAME, self.objects.header_addr(owner), cause);
            }
        }
    }
}
