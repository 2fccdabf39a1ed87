//! Monte Carlo p-values by ranks: exact by exchangeability, whatever atoms the law has.

/// Statistics this near, relative to their size, are equal: sums of the same steps in another
/// order differ by rounding.
const TIE: f64 = 1e-9;

/// Whether a drawn statistic is at least the observed one, or a tie of it.
pub fn reaches(drawn: f64, observed: f64) -> bool {
    drawn >= observed - TIE * observed.abs()
}

fn slack(x: f64) -> f64 {
    TIE * (1.0 + x.abs())
}

/// (1 + #{drawn ≥ observed})/(R + 1); ties count against.
pub fn p_value(drawn: &[f64], observed: f64) -> f64 {
    let bar = observed - slack(observed);
    let reached = drawn.iter().filter(|&&t| t >= bar).count();
    (1 + reached) as f64 / (1 + drawn.len()) as f64
}

/// P(smallest p-value over the columns ≤ the observed one): every replicate is ranked column by
/// column among the others and the data, as the data are. \[Westfall and Young 1993\]
pub fn joint_p_value(columns: &[&[f64]], observed: &[f64]) -> f64 {
    let total = columns.first().map_or(0, |c| c.len());
    let mut fewest = vec![usize::MAX; total];
    let mut seen = usize::MAX;
    let mut order: Vec<(f64, usize)> = Vec::with_capacity(total);
    for (column, &observed) in columns.iter().zip(observed) {
        order.clear();
        order.extend(column.iter().copied().zip(0..));
        order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let bar = observed - slack(observed);
        seen = seen.min(1 + order.partition_point(|o| o.0 >= bar));
        let mut rank = 0;
        for (i, &(t, replicate)) in order.iter().enumerate() {
            // Equal statistics share the rank of the last of them.
            if i >= rank {
                let bar = t - slack(t);
                rank = i + order[i..].partition_point(|o| o.0 >= bar);
            }
            let reached = observed >= t - slack(t);
            fewest[replicate] = fewest[replicate].min(rank + usize::from(reached));
        }
    }
    let extreme = fewest.iter().filter(|&&f| f <= seen).count();
    (1 + extreme) as f64 / (1 + total) as f64
}
