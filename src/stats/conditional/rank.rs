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
fn joint_p_value(columns: &[&[f64]], observed: &[f64]) -> f64 {
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

/// Observed statistics, and those of replicates.
#[derive(Debug, Clone)]
pub struct Ranks {
    observed: Vec<f64>,
    /// One column of replicates for each statistic.
    columns: Vec<Vec<f64>>,
}

impl Ranks {
    /// Of so many replicates, each as `draw` gives it.
    pub fn of(observed: Vec<f64>, replicates: usize, mut draw: impl FnMut() -> Vec<f64>) -> Ranks {
        let mut columns = vec![Vec::with_capacity(replicates); observed.len()];
        for _ in 0..replicates {
            for (column, value) in columns.iter_mut().zip(draw()) {
                column.push(value);
            }
        }
        Ranks { observed, columns }
    }

    /// R, the number of replicates.
    pub fn replicates(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// The smallest p-value of a statistic.
    pub fn least_p_value(&self) -> f64 {
        let all = (0..self.columns.len()).map(|at| self.p_value(at, |observed| observed));
        all.fold(1.0, f64::min)
    }

    /// Whether it takes `all` replicates to tell how small the smallest p-value is.
    pub fn are_too_few(&self, all: usize) -> bool {
        let had = self.replicates();
        all > had && self.least_p_value() <= 1.0 / (had + 1) as f64
    }

    /// p-value of a statistic whose observed value is this of the one that was observed.
    pub fn p_value(&self, at: usize, of: impl Fn(f64) -> f64) -> f64 {
        p_value(&self.columns[at], of(self.observed[at]))
    }

    /// p-value of the smallest p-value of these statistics, by their joint law; each is observed
    /// lower by the second number.
    pub fn joint_p_value(&self, all: impl Iterator<Item = (usize, f64)>) -> f64 {
        let both = all.map(|(at, less)| (&self.columns[at][..], self.observed[at] - less));
        let (columns, observed): (Vec<_>, Vec<_>) = both.unzip();
        joint_p_value(&columns, &observed)
    }
}
