//! All tests of one sample, each under the null that holds for it.

use super::clustered::{Clustered, Tested};
use super::laws::{dispersion, fisher, student, student_of, two_sided};
use super::sample::Sample;
use super::{
    Combined, Cox, Critical, DiscreteTest, InTheLarge, Options, Part, PartResult, Path, ScoreTest,
    Sharing, Spiegelhalter, TCal, TCalOptions,
};
use crate::conditional::{INFORMATION_MIN, Statistic};
use crate::estimate::Estimate;
use crate::smooth::{Forms, Quadratic, information_of_squares};
use crate::{bennett, classical, combined, interval, ks, tcal};

/// All tests of one sample.
pub(super) struct Tests<'a> {
    pub(super) tcal: TCal,
    /// T-Cal for independent outcomes, where events of one score count as a cluster.
    pub(super) single: Option<TCal>,
    /// The options with which T-Cal ran.
    pub(super) tcal_options: TCalOptions,
    /// The tests over distinct scores; `None` also where outcomes are known to depend on each
    /// other.
    pub(super) discrete: Option<DiscreteTest>,
    pub(super) combined: Combined,
    /// Whether the smooth part has only Bennett's upper bound of its p-value.
    pub(super) bounded: bool,
    /// Whether this is because few large weights carry most of the information.
    pub(super) heavy: bool,
    pub(super) smooth: Option<ScoreTest>,
    pub(super) form: Option<Quadratic>,
    pub(super) cox: Option<Cox>,
    pub(super) ks: Path,
    pub(super) kuiper: Path,
    pub(super) in_the_large: InTheLarge,
    pub(super) spiegelhalter: Option<Spiegelhalter>,
    /// p-value of a squared error of 0 at the interval's level; `None` where no law is known.
    pub(super) zero_p_value: Option<f64>,
    pub(super) clustered: Option<Clustered<'a>>,
}

impl Tests<'_> {
    /// Whether events are clustered and there are too few clusters for a test.
    pub(super) fn few_clusters(&self) -> bool {
        self.clustered.as_ref().is_some_and(|c| c.said.are_few())
    }
}

impl Sample<'_> {
    /// All tests of the sample, each under the null that holds for it.
    pub(super) fn tests(&self, o: &Options) -> Tests<'_> {
        let (t, finest) = (&self.totals, self.levels.finest());
        let clustered =
            (self.clusters).map(|(sums, kept)| Clustered::of(sums, kept, self.levels, o));
        let dispersed = dispersion(o).filter(|_| clustered.is_none() || self.by_score);
        let factor = dispersed.map_or(1.0, |(factor, _)| factor);
        let nests = finest.cells.is_multiple_of(self.interval.cells);
        let of_tcal = (clustered.as_ref()).map_or(factor, |c| c.said.dispersion().0.max(factor));
        let mut tcal_options = o.tcal;
        if of_tcal > 1.0 || clustered.is_some() {
            // Redrawn outcomes and the theorem assume independence.
            tcal_options.critical = Critical::Moments;
        }
        if clustered.is_some() {
            // Sign flips join levels by their ranks.
            tcal_options.sharing = Sharing::Joint;
        }
        let forms = Forms::of(finest);
        let least = forms.as_ref().map_or(f64::INFINITY, Forms::least);
        let (mut tcal, mut null) = tcal::tcal_and_null(
            self.levels,
            nests.then_some(self.interval),
            of_tcal,
            &tcal_options,
            (o.family, least),
        );
        let single = self.by_score.then(|| {
            let asked = (o.family, f64::INFINITY);
            tcal::tcal_and_null(self.levels, None, factor, &tcal_options, asked).0
        });
        if let Some(clustered) = &clustered {
            // Sign flips account for clusters; the null keeps the stream's own dispersion, which
            // they do not see.
            null = null.dispersed(factor);
            match &clustered.tests {
                None => tcal.leave_out(),
                Some(tests) => {
                    let kept = tests.levels.len().min(tcal.levels.len());
                    let joint = null.joint_p_value(0..kept).unwrap_or(1.0);
                    let own = (0..kept).map(|level| null.level_p_value(level));
                    let levels = own.zip(&tests.levels).map(|(own, flips)| own.max(*flips));
                    let levels: Vec<f64> = levels.collect();
                    tcal.replace(joint.max(tests.tcal), &levels, o.tcal.alpha);
                }
            }
        }
        let quadratic = |s, statistic: f64, degrees: u32, formula: f64| {
            let formula = match dispersed {
                None => formula,
                Some((factor, nu)) => fisher(statistic / factor, f64::from(degrees), nu),
            };
            null.p_value(s, 1.0 / factor, Some(formula))
        };
        let normal = |s, z: f64| {
            let z = z / factor.sqrt();
            let formula = dispersed.map_or(two_sided(z), |(_, degrees)| student(z, degrees));
            null.p_value(s, 1.0 / factor.sqrt(), Some(formula))
        };
        let path = |s, p: Option<f64>| {
            let linear = |p| dispersed.map_or(p, |(_, degrees)| student_of(p, degrees));
            null.p_value(s, 1.0 / factor.sqrt(), p.map(linear))
        };
        let least = null.least_effective();
        let form = forms.as_ref().and_then(|f| f.smooth.resting_on(least));
        let mut smooth = form.as_ref().map(Quadratic::test);
        if let Some(t) = &mut smooth {
            let p_value = quadratic(Statistic::Smooth, t.statistic, t.degrees, t.p_value);
            t.p_value = p_value.unwrap_or(1.0);
        }
        let bound = (forms.as_ref()).filter(|_| finest.is_weighted() && null.is_silent());
        let bound = bound.and_then(|forms| {
            let p_value = bennett::p_value(finest, 1.0 / factor.sqrt())?;
            let test = forms.smooth.test();
            Some(ScoreTest { p_value, ..test })
        });
        let bounded = bound.is_some();
        // If as many events of one weight would have enough information, the weights are the cause;
        // else outcomes are few.
        let heavy = bounded && t.count * t.v_mean / t.n >= INFORMATION_MIN;
        let mut smooth = bound.or(smooth);
        let mut cox = classical::cox(t, self.interval);
        if let Some(test) = &mut cox {
            // A direction that rests on too few outcomes is left out.
            let form = forms.as_ref().and_then(|f| f.cox.as_ref());
            let kept = form.and_then(|f| f.resting_on(least));
            let (score, degrees, formula) = match (form, kept.map(|kept| kept.test())) {
                (Some(form), Some(kept)) if kept.degrees < form.rank => {
                    (kept.statistic, kept.degrees, Some(kept.p_value))
                }
                (Some(_), None) => (test.score, 2, None),
                _ => (test.score, 2, test.p_value),
            };
            test.score = score;
            test.p_value = formula.and_then(|p| quadratic(Statistic::Cox, score, degrees, p));
        }
        let (mut ks, mut kuiper) = ks::ks_and_kuiper(finest, t.n, factor);
        ks.p_value = path(Statistic::Cumulative, ks.p_value);
        kuiper.p_value = path(Statistic::Kuiper, kuiper.p_value);
        let mut in_the_large = classical::in_the_large(t);
        in_the_large.p_value = (in_the_large.z).and_then(|z| normal(Statistic::InTheLarge, z));
        let rests = information_of_squares(finest) >= least;
        let spiegelhalter = classical::spiegelhalter(t).filter(|_| rests);
        let mut spiegelhalter = spiegelhalter.map(|s| Spiegelhalter {
            p_value: normal(Statistic::Spiegelhalter, s.z),
            ..s
        });
        if let Some(clustered) = &clustered {
            clustered.raise(Tested {
                smooth: &mut smooth,
                cox: &mut cox,
                ks: &mut ks,
                kuiper: &mut kuiper,
                in_the_large: &mut in_the_large,
                spiegelhalter: &mut spiegelhalter,
            });
        }
        let part = |part, p_value: Option<f64>| p_value.map(|p_value| PartResult { part, p_value });
        // The law of this test is not known for dependent outcomes.
        let discrete = self.discrete.clone().filter(|_| dispersed.is_none());
        let others = [
            part(Part::Smooth, smooth.map(|s| s.p_value)),
            part(Part::Cumulative, ks.p_value),
            part(Part::Values, discrete.as_ref().map(|d| d.sum_p_value)),
        ];
        let others: Vec<PartResult> = others.into_iter().flatten().collect();
        let combined = {
            let fine = !self.repeated.is_some_and(|r| r.is_suspicious());
            let flips = clustered.as_ref().map(|c| c.tests.as_ref());
            combined::combined(&null, tcal.levels.len(), fine, &others, o.tcal.alpha, flips)
        };
        let mut zero_p_value = if nests {
            null.zero_p_value(&Estimate::of(self.interval, self.levels.n()))
        } else {
            self.interval_leaves
                .and_then(|leaves| interval::zero_p_value(self.interval, leaves, &o.tcal, 1.0))
        };
        if let Some(clustered) = &clustered {
            zero_p_value = clustered.zero_p_value(self.interval, zero_p_value);
        }
        Tests {
            tcal,
            single,
            tcal_options,
            discrete,
            combined,
            bounded,
            heavy,
            smooth,
            form,
            cox,
            ks,
            kuiper,
            in_the_large,
            spiegelhalter,
            zero_p_value,
            clustered,
        }
    }
}
