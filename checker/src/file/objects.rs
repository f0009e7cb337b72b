//! Objects: what each is, and how many links lead to it.

use h5live_format::messages::{Comment, DatatypeMessage, MessageType, ModificationTime, OldModificationTime};
use h5live_format::{ObjectHeader, Record};

use super::Cause;
use super::space_map::ObjectIndex;
use super::walk::FileWalk;

impl FileWalk<'_> {
    /// Visits an object.
    pub fn object(&mut self, owner: ObjectIndex) {
        let addr = self.objects.header(owner);
        let Some(header) = self.header(addr) else {
            self.incomplete = true;
            return;
        };
        self.objects.set_stated(owner, header.stated_links());
        self.uses_of_shared(&header);
        self.attributes(&header);
        let group = header.has(MessageType::SYMBOL_TABLE) || header.has(MessageType::LINK_INFO);
        let dataset = header.has(MessageType::LAYOUT);
        if group && dataset {
            self.report(ObjectHeader::NAME, addr, Cause::Rule("an object is a group or a dataset, not both"));
        }
        if group {
            self.group(owner, &header);
        } else if dataset || header.has(MessageType::DATASPACE) {
            self.dataset(&header);
        } else if header.has(MessageType::DATATYPE) {
            if let Some(message) = self.message::<DatatypeMessage>(&header) {
                self.unused_bits(&header, &message);
            }
        } else {
            self.report(ObjectHeader::NAME, addr, Cause::Missing("message that tells what the object is"));
        }
        self.message::<Comment>(&header);
        self.message::<ModificationTime>(&header);
        self.message::<OldModificationTime>(&header);
    }

    /// Reports objects with more links than they state, and notes those with fewer.
    pub fn link_counts(&mut self) {
        for (owner, stated, links) in self.objects.wrong_link_counts() {
            if links < stated && (self.incomplete || self.report.is_full()) {
                continue;
            }
            let cause = Cause::Count { what: "hard links", stated: stated.into(), found: links.into() };
            if links > stated || self.options.strict {
                self.report_unless_live(owner, ObjectHeader::NAME, self.objects.header(owner), cause);
            } else {
                // From groups that only lead to each other, once the last link to them was removed.
                self.add_note_for(owner, ObjectHeader::NAME, self.objects.header(owner), cause);
            }
        }
    }
}
