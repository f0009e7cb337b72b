//! Moving the nodes of a symbol table to where something is free.

use std::collections::HashMap;

use h5live_format::{Addr, Btree1GroupKey, Btree1Node, SymbolTableNode};

use super::SymbolTable;
use crate::Result;
use crate::btree1::NodeEntries;

/// Copied nodes, and the nodes that will be changed to lead to the copies ([`SymbolTableRelocation::switch_to_copies`]).
///
/// The copies lead to each other. So they must be in the file before anything else leads to them. Until then the
/// originals stay unchanged. So the nodes that lead to them can be changed in any order.
#[derive(Debug)]
#[must_use = "nothing leads to the copies yet"]
pub struct SymbolTableRelocation {
    table: SymbolTable,
    changed: Vec<(Addr, Btree1Node<Btree1GroupKey>)>,
    /// The originals, and how long they are (bytes).
    moved: Vec<(Addr, u64)>,
}

impl SymbolTable {
    /// Copies nodes at or behind `limit` (bytes from the base address) to free space before it, as far as there is
    /// room. The structures that lead to them will be changed in place, so nothing moves if others may read the table.
    /// Everything must be flushed before and after.
    ///
    /// # Errors
    /// If a node cannot be read.
    pub fn copy_nodes_before(&self, limit: u64) -> Result<Option<SymbolTableRelocation>> {
        let (metadata, cache) = (&self.metadata, self.metadata.cache());
        let node_len = self.tree.node_size();
        let symbols_len = SymbolTableNode::for_k(self.k).size(metadata.widths()) as u64;
        let reached = self.tree.all_blocks()?;
        if !reached.nodes.iter().all(|node| cache.space().may_change_in_place(*node, node_len)) {
            return Ok(None);
        }
        let nodes = reached.nodes.into_iter().map(|addr| Ok((addr, self.tree.load_node(addr, None)?.read().clone())));
        let nodes = nodes.collect::<Result<Vec<_>>>()?;
        let late = reached.children.into_iter().filter(|child| child.get() >= Some(limit));
        let symbols = late.map(|child| Ok((child, self.load_node(child)?.read().clone())));
        let symbols = symbols.collect::<Result<HashMap<_, _>>>()?;
        // From here on nothing fails.
        let movable = nodes.iter().map(|(addr, _)| (*addr, node_len)).filter(|(addr, _)| *addr != self.tree.root());
        let all = symbols.keys().map(|addr| (*addr, symbols_len)).chain(movable);
        let places = metadata.alloc_all_before(limit, all);
        let len = |addr: &Addr| if symbols.contains_key(addr) { symbols_len } else { node_len };
        let moved: Vec<_> = places.keys().map(|addr| (*addr, len(addr))).collect();
        for (addr, symbols) in symbols {
            if let Some(place) = places.get(&addr) {
                cache.insert_entry(*place, metadata.owner(), symbols);
            }
        }
        let at = |addr: Addr| places.get(&addr).copied().unwrap_or(addr);
        let mut changed = Vec::new();
        for (addr, old) in nodes {
            let NodeEntries { keys, children } = NodeEntries::from_node(&old);
            let mut node = old.clone();
            (node.left_sibling, node.right_sibling) = (at(node.left_sibling), at(node.right_sibling));
            let fits = node.set_entries(&keys, &children.into_iter().map(at).collect::<Vec<_>>());
            debug_assert!(fits, "it has the entries that it had");
            if at(addr) != addr {
                cache.insert_entry(at(addr), metadata.owner(), node);
            } else if node != old {
                changed.push((addr, node));
            }
        }
        Ok((!moved.is_empty()).then(|| SymbolTableRelocation { table: self.clone(), changed, moved }))
    }
}

impl SymbolTableRelocation {
    /// Makes the table lead to the copies, which a flush has written, and frees the space of the originals.
    ///
    /// # Errors
    /// If a node cannot be read any more.
    pub fn switch_to_copies(self) -> Result<()> {
        let SymbolTableRelocation { table, changed, moved } = self;
        let nodes = changed.into_iter().map(|(addr, value)| Ok((table.tree.load_node(addr, None)?, value)));
        let nodes = nodes.collect::<Result<Vec<_>>>()?;
        nodes.into_iter().for_each(|(node, value)| node.update(|node| *node = value));
        moved.into_iter().for_each(|(addr, len)| table.metadata.free_structure(addr, len));
        Ok(())
    }
}
