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

/// Number of drawn statistics that are at least the observed one, ties included.
fn reaching(drawn: &[f64], observed: f64) -> usize {
    let bar = observed - slack(observed);
    drawn.iter().filter(|&&t| t >= bar).count()
}

/// (1 + #{drawn ≥ observed})/(R + 1); ties count against.
pub fn p_value(drawn: &[f64], observed: f64) -> f64 {
    (1 + reaching(drawn, observed)) as f64 / (1 + drawn.len()) as f64
}

/// P(smallest p-value over the columns ≤ the observed one): every replicate is ranked column by
/// column among the others and the data, and so are the data. Only the best values of a column can
/// have a rank as good as the best of the data, so only these are sorted. \[Westfall and Young
/// 1993\]
fn joint_p_value(columns: &[&[f64]], observed: &[f64]) -> f64 {
    let total = columns.first().map_or(0, |c| c.len());
    let ranks = columns
        .iter()
        .zip(observed)
        .map(|(c, o)| 1 + reaching(c, *o));
    let best = ranks.min().unwrap_or(usize::MAX);
    let mut extreme = vec![false; total];
    let mut order: Vec<f64> = Vec::with_capacity(total);
    let falling = |a: &f64, b: &f64| b.total_cmp(a);
    for (column, &observed) in columns.iter().zip(observed) {
        order.clear();
        order.extend_from_slice(column);
        if best < total {
            order.select_nth_unstable_by(best, falling);
            // One more, to see whether the last has a tie beyond.
            order.truncate(best + 1);
        }
        order.sort_unstable_by(falling);
        let (mut rank, mut least) = (0, f64::INFINITY);
        for (i, &t) in order.iter().enumerate() {
            let bar = t - slack(t);
            // Equal statistics share the rank of the last of them.
            if i >= rank {
                rank = i + order[i..].partition_point(|&o| o >= bar);
            }
            if rank + usize::from(observed >= bar) > best {
                break;
            }
            least = t;
        }
        let each = extreme.iter_mut().zip(*column);
        each.for_each(|(extreme, &t)| *extreme |= t >= least);
    }
    let extreme = extreme.iter().filter(|&&e| e).count();
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
    /// From the observed statistics, and a column of replicates for each.
    pub fn new(observed: Vec<f64>, columns: Vec<Vec<f64>>) -> Ranks {
        Ranks { observed, columns }
    }

    /// Draws this number of replicates: `draw` adds the statistics of one to an empty list.
    pub fn of(observed: Vec<f64>, replicates: usize, mut draw: impl FnMut(&mut Vec<f64>)) -> Ranks {
        let mut columns = vec![Vec::with_capacity(replicates); observed.len()];
        let mut drawn = Vec::with_capacity(observed.len());
        for _ in 0..replicates {
            drawn.clear();
            draw(&mut drawn);
            for (column, value) in columns.iter_mut().zip(&drawn) {
                column.push(*value);
            }
        }
        Ranks::new(observed, columns)
    }

    /// R, the number of replicates.
    pub fn replicates(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// The smallest p-value of all statistics.
    pub fn least_p_value(&self) -> f64 {
        let all = (0..self.columns.len()).map(|at| self.p_value(at, |observed| observed));
        all.fold(1.0, f64::min)
    }

    /// Whether `all` replicates are needed to know how small the smallest p-value is.
    pub fn are_too_few(&self, all: usize) -> bool {
        let had = self.replicates();
        all > had && self.least_p_value() <= 1.0 / (had + 1) as f64
    }

    /// p-value of statistic `at`, where `of` first maps its observed value.
    pub fn p_value(&self, at: usize, of: impl Fn(f64) -> f64) -> f64 {
        p_value(&self.columns[at], of(self.observed[at]))
    }

    /// p-value of the smallest p-value of these statistics, by their joint law; the second number
    /// is subtracted from each observed value.
    pub fn joint_p_value(&self, all: impl Iterator<Item = (usize, f64)>) -> f64 {
        let both = all.map(|(at, less)| (&self.columns[at][..], self.observed[at] - less));
        let (columns, observed): (Vec<_>, Vec<_>) = both.unzip();
        joint_p_value(&columns, &observed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// The definition: every replicate against all others and the data.
    fn by_definition(columns: &[&[f64]], observed: &[f64]) -> f64 {
        let total = columns[0].len();
        let fewest = |of: &dyn Fn(usize) -> f64, beside: &dyn Fn(usize) -> Option<f64>| {
            let ranks = columns.iter().enumerate().map(|(at, column)| {
                let others = column.iter().copied().chain(beside(at));
                others.filter(|&t| t >= of(at)).count()
            });
            ranks.min()
        };
        // The data themselves are one of those that reach them.
        let best = fewest(&|at| observed[at], &|at| Some(observed[at]));
        let replicates = (0..total).filter(|&replicate| {
            fewest(&|at| columns[at][replicate], &|at| Some(observed[at])) <= best
        });
        (1 + replicates.count()) as f64 / (1 + total) as f64
    }

    #[test]
    fn the_joint_p_value_is_that_of_its_definition_with_ties_and_without() {
        let mut rng = Rng::new(5);
        for case in 0..600u32 {
            let (total, width) = (1 + rng.below(60), 1 + rng.below(5));
            // Few values have many ties.
            let values = [3.0, 10.0, 1e6][case as usize % 3];
            let mut value = || (values * rng.uniform()).floor();
            let columns: Vec<Vec<f64>> = (0..width)
                .map(|_| (0..total).map(|_| value()).collect())
                .collect();
            let observed: Vec<f64> = (0..width).map(|_| value()).collect();
            let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
            let expected = by_definition(&columns, &observed);
            assert_eq!(joint_p_value(&columns, &observed), expected, "case {case}");
        }
    }
}
