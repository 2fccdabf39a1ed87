//! The HTML pages: streams, one stream, alerts, runbooks.
//!
//! Plain HTML that works without a script, behind any proxy and in a text browser. One small script
//! (`script.js`) refreshes the page every ten seconds without moving focus or scroll position;
//! without it the page reloads itself. Every value from outside passes through [`escape`].

mod alerts;
mod index;
mod sources;
mod stream;
mod window;

pub use alerts::alerts;
pub use index::index;
pub use stream::stream;

use crate::report::html::{STYLE, escape};
use crate::telemetry::Published;
use crate::telemetry::facts::Role;

/// The script at `/script.js`.
pub const SCRIPT: &str = include_str!("script.js");
/// The icon at `/icon.svg`.
pub const ICON: &str = include_str!("icon.svg");

/// A page; `here` is the path of its entry in the navigation, if it has one.
pub(super) fn page(title: &str, here: &str, body: &str) -> String {
    let entry = |(path, name): &(&str, &str)| {
        let current = if *path == here {
            " aria-current=page"
        } else {
            ""
        };
        format!("<a href={path}{current}>{name}</a>")
    };
    let entries = [
        ("/", "Streams"),
        ("/alerts", "Alerts"),
        ("/runbooks", "Runbooks"),
        ("/api/v1", "API"),
    ];
    let entries: String = entries.iter().map(entry).collect();
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{}</title>\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\
         <link rel=icon href=/icon.svg type=image/svg+xml><style>{STYLE}</style>\
         <noscript><meta http-equiv=refresh content=30></noscript><script src=/script.js defer></script>\
         <header><nav aria-label=pages><b>trueline</b>{entries}</nav></header><main>{body}</main></html>\n",
        escape(title)
    )
}

/// Says where `what` is shown, if this process does not judge.
fn elsewhere(published: &Published, what: &str) -> Option<String> {
    let does = match published.facts().role {
        Role::Worker => "counts",
        Role::Standby => "stands by",
        Role::Alone | Role::Judge(_) => return None,
    };
    Some(format!(
        "<p>This process {does}. The process that judges shows the {what}.</p>"
    ))
}

/// The page for an address at which there is nothing.
pub fn nothing(what: &str, hint: &str, links: &[(String, String)]) -> String {
    let mut body = format!(
        "<h1>Not found</h1><p class=words>{}</p><p>{}</p>",
        escape(what),
        escape(hint)
    );
    if !links.is_empty() {
        body.push_str("<ul class=links>");
        for (path, name) in links {
            body.push_str(&format!(
                "<li><a href=\"{}\">{}</a>",
                escape(path),
                escape(name)
            ));
        }
        body.push_str("</ul>");
    }
    page("not found · trueline", "", &body)
}
