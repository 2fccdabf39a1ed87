//! A self-contained page with the results of `evaluate` or `replay`, for people without access to
//! trueline.
//!
//! A page is one file. It loads nothing from a network, and its policy forbids that. It has no
//! script, follows the reader's light or dark mode, can be printed, and fits a phone. Drawings and
//! numbers are those of the service's pages. Every value from outside passes through [`escape`].
//!
//! | file | shows |
//! |---|---|
//! | [`evaluation`] | one sample of scores: verdict, diagram, tests, cells |
//! | [`classes`] | vectors of class probabilities: all classes, and the worst in detail |
//! | [`replay`] | streams and windows with their past and their alerts |
//! | [`measures`] | AUC, accuracy, log loss and Brier score |
//! | [`recalibration`] | the map that would make the scores true, and what it would change |

pub mod classes;
pub mod evaluation;
pub mod measures;
pub mod recalibration;
pub mod replay;

use super::html::{STYLE, escape};

/// A whole HTML page.
fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{} · trueline</title>\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=content-security-policy content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <style>{STYLE}</style><main>{body}<p class=foot>Made by trueline {}. The file holds everything that it \
         shows.</p></main></html>\n",
        escape(title),
        env!("CARGO_PKG_VERSION")
    )
}

/// A table in which the first column names the row; cells are HTML.
fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut out = String::from("<div class=scroll><table class=wide><thead><tr>");
    for name in head {
        out += &format!("<th>{name}");
    }
    out.push_str("<tbody>");
    for row in rows {
        out.push_str("<tr>");
        for (i, cell) in row.iter().enumerate() {
            match i {
                0 => out += &format!("<th scope=row>{cell}"),
                _ => out += &format!("<td data-k=\"{}\">{cell}", head.get(i).unwrap_or(&"")),
            }
        }
    }
    out.push_str("</table></div>");
    out
}
