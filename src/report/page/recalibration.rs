//! The map that would make the scores true: its name, its values at a few scores, and its effect.

use super::table;
use crate::report::html::{capital, escape, number, thousands};
use crate::report::recalibration::words;
use crate::stats::evaluation::Evaluation;
use crate::stats::recalibration::{Fits, Judgement, Map, Measures, Method};

/// Most scores at which a map is shown.
const SCORES: usize = 12;

/// The section of maps that were fitted and judged; `how` describes the events.
pub fn section(
    e: &Evaluation,
    fits: &Fits,
    judgement: &Judgement,
    map: Option<&Map>,
    how: &str,
) -> String {
    let mut out = format!(
        "<section><h2>Recalibration</h2><p class=words>{}.</p><p class=sub>{} Fitted to {} events, judged on {} others.</p>",
        escape(&capital(&words(judgement, fits))),
        escape(how),
        thousands(fits.n),
        thousands(judgement.n)
    );
    out += &changes(fits, judgement);
    if let Some(map) = map {
        out.push_str("<h3>What to say instead</h3>");
        out += &said_instead(e, map);
        out.push_str(
            "<p class=sub>The dashed line in the diagram is this map; where a cell is in want of it, its point lies near \
             the line.</p>",
        );
    }
    out + "</section>"
}

/// The table of each map's scores before and after.
fn changes(fits: &Fits, judgement: &Judgement) -> String {
    let row = |name: &str, gain: String, m: &Measures| {
        vec![
            name.to_owned(),
            number(m.log_loss),
            gain,
            number(m.brier),
            number(m.ece_l1),
            number(m.ece_l2()),
        ]
    };
    let mut rows = vec![row("as it is", "–".to_owned(), &judgement.original)];
    for method in Method::ALL {
        let name = match judgement.advice.method() == Some(method) {
            true => format!("<b>{}</b> (advised)", method.as_str()),
            false => method.as_str().to_owned(),
        };
        match (judgement.trial(method), &fits.maps[method as usize]) {
            (Some(t), _) => {
                let gain = format!("{:+.5} ± {:.5}", t.log_loss.mean, t.log_loss.standard_error);
                rows.push(row(&name, gain, &t.recalibrated));
            }
            (None, Err(why)) => rows.push(vec![name, format!("none: {}", why.words())]),
            (None, Ok(_)) => {}
        }
    }
    table(
        &[
            "map",
            "log loss",
            "gain ± standard error",
            "Brier score",
            "ECE ℓ1",
            "ECE ℓ2",
        ],
        &rows,
    )
}

/// The table of the map's values at the mean scores of cells with events.
pub fn said_instead(e: &Evaluation, map: &Map) -> String {
    let cells: Vec<_> = e.reliability.iter().filter(|c| c.n > 0).collect();
    let step = cells.len().div_ceil(SCORES).max(1);
    let row = |z: f64, rate: f64, n: u64| {
        let recalibrated = map.rate(z);
        vec![
            number(z),
            number(recalibrated),
            format!("{:+.4}", recalibrated - z),
            number(rate),
            thousands(n),
        ]
    };
    let cells = cells.iter().step_by(step);
    let rows: Vec<_> = cells
        .map(|c| row(c.mean_score, c.event_rate, c.n))
        .collect();
    table(
        &[
            "score",
            "say instead",
            "change",
            "event rate there",
            "events",
        ],
        &rows,
    )
}
