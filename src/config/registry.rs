//! `[registry]`, and the format of the records of a source.

use std::time::Duration;

use crate::decode::{Envelope, Format, Packing};
use crate::registry::RegistryOptions;

use super::document::Record;
use super::problem::Problems;

/// The registry, if one is named. A source with schemas requires one.
pub fn registry(root: &Record, problems: &mut Problems<'_>) -> Option<RegistryOptions> {
    let record = root.child("registry");
    let Some(url) = record.owned("url") else {
        for source in root.all("source") {
            let format = source.entry("format");
            if let Some(name @ ("avro" | "protobuf")) = source.text("format") {
                let what = format!(
                    "`format` is \"{name}\", whose schemas are in a registry, and none is named"
                );
                let remedy = "add [registry] with `url = \"http://localhost:8081\"`";
                problems.add(format.at, what, remedy);
            }
        }
        return None;
    };
    let at = record.entry("url").at;
    if !url.starts_with("http://") && !url.starts_with("https://") {
        let what = "`url` is neither http nor https";
        problems.add(at, what, "write \"http://host:port\"");
    }
    let authority = url
        .split("://")
        .nth(1)
        .and_then(|rest| rest.split('/').next());
    if authority.is_some_and(|authority| authority.contains('@')) {
        let what = "`url` has credentials in it, which messages and logs would show";
        let remedy = "write them as `user` and `password` of [registry]";
        problems.add(at, what, remedy);
    }
    let user = record.owned("user");
    if user.is_none() && record.entry("password").given {
        let what = "[registry] has a `password` and no `user`";
        problems.add(record.entry("password").at, what, "add `user`");
    }
    Some(RegistryOptions {
        url,
        user,
        password: record.owned("password"),
        ca_file: record.path("ca_file").map(std::path::Path::to_path_buf),
        timeout: Duration::from_millis(record.milliseconds("timeout").unsigned_abs().max(1)),
    })
}

/// Format, envelope and rows of the records of a source.
pub fn packing(source: &Record) -> Packing {
    Packing {
        format: match source.text("format") {
            Some("avro") => Format::Avro,
            Some("protobuf") => Format::Protobuf,
            _ => Format::Json,
        },
        envelope: match source.text("envelope") {
            Some("cloudevents") => Envelope::CloudEvents,
            _ => Envelope::None,
        },
        rows: source.owned("rows"),
    }
}
