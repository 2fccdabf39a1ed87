//! The recalibration maps of a stream: as JSON, and as a table for download.

use serde_json::Value;

use super::api::{asked, by_window};
use crate::judge::{StreamReport, WindowReport};
use crate::report::recalibration;
use crate::stats::recalibration::{Map, Method, table};

/// Why there is no table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoTable {
    /// There is no window of that name.
    Window,
    /// There is no map of that name.
    Method,
    /// No map is recommended, or the map could not be fitted.
    Map,
}

/// The maps of one window or of all windows; `None` if there is no window of that name.
pub fn json(report: &StreamReport, window: Option<&str>) -> Option<Value> {
    by_window(report, window, |w, entry| {
        let recalibration = w.recalibration.as_deref();
        entry["recalibration"] = recalibration.map_or(Value::Null, recalibration::json);
    })
}

/// The table of a map. Without `method`, it is the advised map of the first window that advises
/// one. With `method`, it is the judged map of that family or, if none was judged, the one that
/// awaits its trial.
pub fn csv(
    report: &StreamReport,
    window: Option<&str>,
    method: Option<&str>,
) -> Result<String, NoTable> {
    let method = match method {
        None | Some("advised") => None,
        Some(name) => {
            let known = Method::ALL.into_iter().find(|m| m.as_str() == name);
            Some(known.ok_or(NoTable::Method)?)
        }
    };
    if window.is_some() && asked(report, window).next().is_none() {
        return Err(NoTable::Window);
    }
    let found = asked(report, window).find_map(|w| Some((w, chosen(w, method)?)));
    let (window, map) = found.ok_or(NoTable::Map)?;
    let id = report.id.to_string().replace(['\n', '\r'], " ");
    let name = &window.window;
    Ok(format!("# stream={id} window={name}\n{}", table::csv(map)))
}

fn chosen(w: &WindowReport, method: Option<Method>) -> Option<&Map> {
    let recalibration = w.recalibration.as_deref()?;
    match method {
        None => recalibration.advised().map(|(map, _)| map),
        Some(method) => {
            let judged = recalibration.judged.as_ref().map(|j| &j.fitted);
            judged.unwrap_or(&recalibration.fitted).fits.map(method)
        }
    }
}
