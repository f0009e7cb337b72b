//! The reader of attributes.

use std::sync::Arc;

use h5live_checker::schedule::{Verdict, View};
use h5live_checker::trace::{Counter, Trace};
use h5live_model::Objects;

use crate::checked::{End, Eyes, verdict};
use crate::find;

/// A reader of the attributes `a0`, `a1`, ... of the dataset `d`, which the trace counts as `a`, and of which each
/// holds its number.
pub fn attributes(trace: &Trace, passes: usize) -> impl Fn(&Arc<View>) -> Verdict + Sync + use<> {
    let (issued, flushed) = (Counter::new(trace, "a.issued"), Counter::new(trace, "a.flushed"));
    move |view| verdict(follow(&Eyes(view), passes, &issued, &flushed))
}

fn follow(eyes: &Eyes<'_>, passes: usize, issued: &Counter, flushed: &Counter) -> Result<(), End> {
    let view = eyes.0;
    let file = eyes.open()?;
    let id = eyes.see("find the dataset", || find(&file, "d"))?.ok_or_else(|| "there is no link d".to_owned())?;
    let opened = view.set_history(Default::default());
    let mut before = 0;
    for pass in 0..passes {
        // Each look at an object reads its header anew.
        view.set_history(Default::default());
        eyes.checkpoint((pass, before, opened))?;
        let least = flushed.at(view.prefix()).unwrap_or(0);
        let names = eyes.see("list the attributes", || file.attribute_names(id))?;
        let most = issued.at(view.prefix()).unwrap_or(0);
        let count = names.len() as u64;
        if count < before.max(least) || count > most {
            let (had, names) = (before.max(least), names);
            return Err(
                format!("there are the attributes {names:?}, of {had} that were there and {most} written").into()
            );
        }
        before = count;
        for number in 0..count {
            let name = format!("a{number}");
            let found = eyes.see("read an attribute", || file.attribute(id, &name.as_str().into()))?;
            let value = found.map(|attribute| attribute.value);
            if value.as_deref().and_then(<[u8]>::first_chunk) != Some(&number.to_le_bytes()) {
                return Err(format!("the attribute {name} is {value:?}").into());
            }
        }
    }
    Ok(())
}
