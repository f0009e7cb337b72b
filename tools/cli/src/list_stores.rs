//! `h5live stores`: the stores, their schemes, options and capabilities.

use std::fmt::Write;

use h5live::Options;
use serde_json::{Value as Json, json};

use crate::error::{CommandOutcome, Result};
use crate::model::{
    Capabilities, ChunkEncodedBy, ChunkReadStrategy, Connector, ConsistencyScope, DurabilitySupport, PartialWrites,
    SettingDescription, SmallWritesStagedBy,
};
use crate::output::StdoutWriter;

/// Lists the stores: their schemes, options and capabilities
///
/// A location is a path, or STORE:REST?OPTION=VALUE&... Wherever a command takes a file, it takes a location. A text
/// whose scheme is not listed here is a path, so run:1.h5 is a file. A file whose name begins with a scheme is ./mem:x.
/// In a URL, a percent sign, a question mark and the like are written as %25, %3F.
#[derive(Debug, clap::Args)]
pub struct StoresCommand {
    /// For programs: a JSON object per line
    #[arg(long)]
    json: bool,
}

impl StoresCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn run(self) -> Result<CommandOutcome> {
        let registry = Options::built_in_connectors();
        let mut out = StdoutWriter::stdout();
        for (i, connector) in registry.connectors().enumerate() {
            if self.json {
                out.line(as_json(connector, i == 0))?;
            } else {
                out.line(as_text(connector, i == 0))?;
            }
        }
        if !self.json {
            out.line("every store\n  options:")?;
        }
        for (setting, default) in Options::common_settings_with_defaults() {
            match self.json {
                true => out.line(json!({ "option": setting_as_json(&setting, Some(default)) }))?,
                false => out.line(setting_as_text(&setting, &default).trim_start_matches('\n'))?,
            }
        }
        for (scheme, feature) in registry.missing_scheme_features() {
            if self.json {
                out.line(json!({ "scheme": scheme, "feature": feature }))?;
            } else {
                out.line(format_args!("{scheme}: needs the feature {feature}"))?;
            }
        }
        out.flush()?;
        Ok(CommandOutcome::Clean)
    }
}

/// What a store can do, by name.
fn capabilities(of: &Capabilities) -> Vec<(&'static str, String)> {
    let unit = |unit: ConsistencyScope| match unit {
        ConsistencyScope::Chunk => "a chunk",
        ConsistencyScope::Object => "an object",
        ConsistencyScope::Store => "everything",
    };
    let features: Vec<_> = of.features.names().collect();
    let parts = match of.partial_writes {
        PartialWrites::Bytes { multiple_of: 1 } => "bytes".to_owned(),
        PartialWrites::Bytes { multiple_of } => format!("runs of {multiple_of} bytes"),
        PartialWrites::ElementBlocks => "blocks".to_owned(),
        PartialWrites::Whole => "whole chunks".to_owned(),
    };
    let reads = match of.reads {
        ChunkReadStrategy::Direct { .. } => "one by one".to_owned(),
        ChunkReadStrategy::ElementBlocks => "blocks".to_owned(),
        ChunkReadStrategy::Batched { preferred_reads_in_flight: in_flight, .. } => format!("{in_flight} at a time"),
    };
    let durability = match of.durability {
        DurabilitySupport::OnRequest => "on request",
        DurabilitySupport::Always => "always",
        DurabilitySupport::Never => "never",
    };
    let by = |caller: bool| if caller { "h5live" } else { "the store" };
    vec![
        ("features", features.join(", ")),
        ("followed while written", if of.supports_live_reads { "yes" } else { "no" }.to_owned()),
        ("shown at once", unit(of.commit).to_owned()),
        ("read as of one moment", unit(of.view).to_owned()),
        ("outlasts a power failure", durability.to_owned()),
        ("parts of chunks written", parts),
        ("chunks read", reads),
        ("small writes gathered by", by(of.staging == SmallWritesStagedBy::Caller).to_owned()),
        ("chunks encoded by", by(of.encoding == ChunkEncodedBy::Pipeline).to_owned()),
    ]
}

fn as_text(connector: &dyn Connector, opens_paths: bool) -> String {
    let mut text = format!("{}\n  locations: ", connector.name());
    let schemes: Vec<_> = connector.schemes().iter().map(|scheme| format!("{scheme}:")).collect();
    text.push_str(&schemes.join(" "));
    if opens_paths {
        text.push_str(", and paths");
    }
    // Writing to a string does not fail.
    for (name, value) in capabilities(&h5live::max_file_capabilities(connector)) {
        let _ = write!(text, "\n  {name}: {value}");
    }
    let options = connector.options();
    let _ =
        write!(text, "\n  options:{}", if options.visible_setting_descriptions().is_empty() { " none" } else { "" });
    for setting in options.visible_setting_descriptions() {
        let default = options.get(setting.name).unwrap_or_default();
        text.push_str(&setting_as_text(setting, &default));
    }
    text
}

fn setting_as_text(setting: &SettingDescription, default: &str) -> String {
    format!("\n    {}={}  (default: {default})\n        {}", setting.name, setting.value_form, setting.help)
}

fn setting_as_json(setting: &SettingDescription, default: Option<String>) -> Json {
    json!({ "name": setting.name, "form": setting.value_form, "default": default, "help": setting.help })
}

fn as_json(connector: &dyn Connector, opens_paths: bool) -> Json {
    let options = connector.options();
    let of_setting = |setting: &SettingDescription| setting_as_json(setting, options.get(setting.name));
    let can: serde_json::Map<_, _> = capabilities(&h5live::max_file_capabilities(connector))
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    json!({
        "store": connector.name(),
        "schemes": connector.schemes(),
        "paths": opens_paths,
        "options": options.visible_setting_descriptions().iter().map(of_setting).collect::<Vec<_>>(),
        "capabilities": can,
    })
}
