//! Every class against the rest, with one error for all.
//!
//! K scalar tests of one sample are dependent in ways that depend on the predictions; Holm's
//! step-down (1979) keeps the chance of any false rejection at α whatever the dependence: p-values
//! in ascending order are multiplied by K, K − 1, … and made to ascend. The smallest adjusted
//! p-value is Bonferroni's and tests all classes at once.

use crate::evaluation::{Extent, Options, evaluate_scores};
use crate::kernel::Vectors;
use crate::view::{View, ViewError};

/// The test of one class against the rest.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ClassResult {
    /// Index of the class.
    pub class: u32,
    /// p-value of the test that decides, of the class against the rest.
    pub p_value: f64,
    /// The p-value of the class, adjusted for all classes.
    pub adjusted: f64,
    /// The class is rejected at α of the whole family.
    pub reject: bool,
    /// Mean residual, in [−1, 1]: positive where scores are too low.
    pub mean_residual: f64,
}

/// The tests of all classes against the rest.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Classwise {
    /// p-value of the hypothesis that every class is calibrated.
    pub p_value: f64,
    /// Whether this p-value is at most α.
    pub reject: bool,
    /// Classes in the order of their indices.
    pub classes: Vec<ClassResult>,
}

/// The options of one class of a sample.
pub fn of_class(sample: &Vectors, o: &Options) -> Options {
    Options {
        family: sample.classes() as u32,
        distances: Extent::Off,
        ..o.clone()
    }
}

/// Tests every class of a sample.
pub fn classwise(sample: &Vectors, o: &Options) -> Result<Classwise, ViewError> {
    let o = of_class(sample, o);
    let mut classes = Vec::with_capacity(sample.classes());
    for class in 0..sample.classes() as u32 {
        let one = sample.project(View::Class(class))?;
        let residual: f64 = one.iter().map(|&(z, y)| f64::from(u8::from(y)) - z).sum();
        classes.push(ClassResult {
            class,
            p_value: evaluate_scores(&one, &o).map_or(1.0, |e| e.p_value),
            adjusted: 1.0,
            reject: false,
            mean_residual: residual / one.len().max(1) as f64,
        });
    }
    holm(&mut classes, o.tcal.alpha);
    let p_value = classes.iter().map(|c| c.adjusted).fold(1.0, f64::min);
    Ok(Classwise {
        p_value,
        reject: p_value <= o.tcal.alpha,
        classes,
    })
}

fn holm(classes: &mut [ClassResult], alpha: f64) {
    let p: Vec<f64> = classes.iter().map(|c| c.p_value).collect();
    for (class, adjusted) in classes.iter_mut().zip(adjust(&p)) {
        class.adjusted = adjusted;
        class.reject = adjusted <= alpha;
    }
}

/// Holm's adjusted p-values, in the order given.
pub fn adjust(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let (mut adjusted, mut before) = (vec![1.0; p.len()], 0f64);
    for (rank, &at) in order.iter().enumerate() {
        let factor = (p.len() - rank) as f64;
        before = before.max((factor * p[at]).min(1.0));
        adjusted[at] = before;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::DecideBy;
    use crate::rng::Rng;

    /// One of many rare classes happens far more often than its scores say.
    #[test]
    fn one_of_a_thousand_rare_classes_can_be_rejected() {
        [100, 1000].into_iter().for_each(one_rare_class);
    }

    fn one_rare_class(classes: usize) {
        let mut sample = Vectors::new(classes);
        for i in 0..400 {
            let one = 0.01 / classes as f64;
            let mut p = vec![one; classes];
            p[0] = 1.0 - one * (classes - 1) as f64;
            sample.push(&p, if i % 100 == 0 { 7 } else { 0 }).unwrap();
        }
        let found = classwise(&sample, &Options::default()).unwrap();
        let rejected: Vec<u32> = (found.classes.iter())
            .filter(|c| c.reject)
            .map(|c| c.class)
            .collect();
        assert_eq!(rejected, [7], "{:?}", found.classes[7]);
    }

    /// Log-odds that are 1.15 times the true ones: T-Cal alone seldom finds that.
    #[test]
    fn classes_are_decided_by_the_test_that_decides() {
        let mut rng = Rng::new(808);
        let mut sample = Vectors::new(3);
        for _ in 0..4000 {
            let odds: Vec<f64> = (0..3).map(|_| 1.5 * rng.normal()).collect();
            let softmax = |t: f64| {
                let e: Vec<f64> = odds.iter().map(|l| (l / t).exp()).collect();
                let all: f64 = e.iter().sum();
                e.iter().map(|e| e / all).collect::<Vec<f64>>()
            };
            let (said, truth, u) = (softmax(1.0), softmax(1.15), rng.uniform());
            let class = u32::from(u > truth[0]) + u32::from(u > truth[0] + truth[1]);
            sample.push(&said, class).unwrap();
        }
        let by = |decide_by| {
            let o = Options {
                decide_by,
                ..Options::default()
            };
            (classwise(&sample, &o).unwrap(), of_class(&sample, &o))
        };
        let ((found, o), (tcal, _)) = (by(DecideBy::Combined), by(DecideBy::Tcal));
        assert!(found.reject && found.p_value < 0.1 * tcal.p_value);
        for c in &found.classes {
            let one = sample.project(View::Class(c.class)).unwrap();
            assert_eq!(evaluate_scores(&one, &o).unwrap().p_value, c.p_value);
        }
    }

    #[test]
    fn holm_multiplies_by_what_is_left_and_never_descends() {
        let of = |p_value| ClassResult {
            class: 0,
            p_value,
            adjusted: 0.0,
            reject: false,
            mean_residual: 0.0,
        };
        let mut classes = [of(0.04), of(0.01), of(0.03), of(0.9)];
        holm(&mut classes, 0.05);
        let adjusted: Vec<f64> = classes
            .iter()
            .map(|c| (c.adjusted * 1e6).round() / 1e6)
            .collect();
        assert_eq!(adjusted, [0.09, 0.04, 0.09, 0.9]);
        assert!(classes[1].reject && !classes[2].reject);
    }
}
