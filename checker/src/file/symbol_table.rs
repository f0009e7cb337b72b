//! Old groups: a B-tree of symbol table nodes, and a local heap of names.

use h5live_format::messages::SymbolTableMessage;
use h5live_format::{Addr, Btree1GroupKey, Record, SymbolTableEntry, SymbolTableNode, SymbolTableScratchPad};

use super::FindingCause;
use super::btree1::Btree1Check;
use super::header::CheckedObjectHeader;
use super::local_heap::CheckedLocalHeap;
use super::space_map::ObjectIndex;
use super::walk::FileWalk;

const NODE: &str = SymbolTableNode::NAME;

impl FileWalk<'_> {
    /// The links of an old group.
    pub fn check_symbol_table(&mut self, owner: ObjectIndex, header: &CheckedObjectHeader) {
        let Some(table) = self.load_message::<SymbolTableMessage>(header) else {
            self.incomplete = true;
            return;
        };
        if let Some((btree, heap)) = self.objects.cached_symbol_table(owner)
            && (btree, heap) != (table.btree, table.heap)
        {
            let rule = "the entry of the group states the symbol table of its header";
            self.report(SymbolTableEntry::NAME, header.addr, FindingCause::BrokenRule(rule));
        }
        let Some(mut heap) = self.check_local_heap(table.heap) else {
            self.incomplete = true;
            return;
        };
        let names = LocalHeapNames::of(&heap);
        let sorted = |from: &Btree1GroupKey, to: &Btree1GroupKey| names.is_sorted(from, to);
        let tree = Btree1Check::<Btree1GroupKey>::new(self.k.group_internal, (), &sorted);
        let mut last: Option<Vec<u8>> = None;
        let whole = self.check_and_walk_btree1(table.btree, tree, &mut |walk, from, node, to| {
            let between = (names.get(from.0), names.get(to.0));
            walk.check_symbol_table_node(owner, &mut heap, node, between, &mut last);
        });
        self.incomplete |= !whole;
    }

    fn check_symbol_table_node(
        &mut self,
        owner: ObjectIndex,
        heap: &mut CheckedLocalHeap,
        addr: Addr,
        between: (Option<Vec<u8>>, Option<Vec<u8>>),
        last: &mut Option<Vec<u8>>,
    ) {
        let blank = SymbolTableNode::for_k(self.k);
        let size = blank.size(self.widths) as u64;
        let Some(node) = self.claim_and_decode(blank, addr, size) else {
            self.incomplete = true;
            return;
        };
        if node.entries.is_empty() {
            self.report(NODE, addr, FindingCause::Missing("entry in it"));
        }
        for (index, entry) in node.entries.iter().enumerate() {
            let Some(name) = self.claim_and_read_local_string(heap, entry.name_offset) else { continue };
            if name.is_empty() {
                self.report(NODE, addr, FindingCause::BrokenRule("a link has a name"));
            }
            let (from, to) = &between;
            let inside = from.as_ref().is_none_or(|from| from < &name) && to.as_ref().is_none_or(|to| &name <= to);
            if !inside {
                self.report(NODE, addr, FindingCause::BrokenRule("names lie between the keys beside their node"));
            }
            match last.as_ref() {
                Some(before) if *before == name => {
                    self.report(NODE, addr, FindingCause::NameRepeated(String::from_utf8_lossy(&name).into_owned()));
                }
                Some(before) if *before > name => {
                    self.report(NODE, addr, FindingCause::OutOfOrder { what: "entry", index: index as u64 });
                }
                _ => {}
            }
            self.check_symbol(owner, heap, addr, entry, &name);
            *last = Some(name);
        }
    }

    fn check_symbol(
        &mut self,
        owner: ObjectIndex,
        heap: &mut CheckedLocalHeap,
        node: Addr,
        entry: &SymbolTableEntry,
        name: &[u8],
    ) {
        if let SymbolTableScratchPad::SoftLink { value_offset } = entry.cache {
            self.claim_and_read_local_string(heap, value_offset.into());
            return;
        }
        let Some(at) = entry.header.get() else {
            self.report(NODE, node, FindingCause::UndefinedAddr("object header"));
            return;
        };
        let child = self.objects.add_link(owner, name, at);
        if let SymbolTableScratchPad::Group { btree, heap } = entry.cache {
            self.objects.set_cached_symbol_table(child, (btree, heap));
        }
    }
}

/// Keys are compared up to here (bytes).
const MAX_COMPARED_BYTES: usize = 1 << 16;

/// The names of a heap, to compare keys.
struct LocalHeapNames(Vec<u8>);

impl LocalHeapNames {
    fn of(heap: &CheckedLocalHeap) -> Self {
        LocalHeapNames(heap.data_segment().to_vec())
    }

    fn get(&self, offset: u64) -> Option<Vec<u8>> {
        let rest = self.0.get(usize::try_from(offset).ok()?..)?;
        let rest = rest.get(..MAX_COMPARED_BYTES).unwrap_or(rest);
        let len = rest.iter().position(|byte| *byte == 0)?;
        rest.get(..len).map(<[u8]>::to_vec)
    }

    fn is_sorted(&self, from: &Btree1GroupKey, to: &Btree1GroupKey) -> bool {
        matches!((self.get(from.0), self.get(to.0)), (Some(from), Some(to)) if from < to)
    }
}
