"""The checks, each a module with one mistake or a few related ones."""

from __future__ import annotations

from course_utils.audit.check import Check
from course_utils.audit.checks.adapting import Adapting
from course_utils.audit.checks.arguments import Arguments
from course_utils.audit.checks.ascending import Ascending
from course_utils.audit.checks.attending import Attending
from course_utils.audit.checks.averages import Averages
from course_utils.audit.checks.both_ways import BothWays
from course_utils.audit.checks.bounded import Bounded
from course_utils.audit.checks.cancelling import Cancelling
from course_utils.audit.checks.carrying import Carrying
from course_utils.audit.checks.casting import Casting
from course_utils.audit.checks.chains import Chains
from course_utils.audit.checks.choosing import Choosing
from course_utils.audit.checks.clearing import Clearing
from course_utils.audit.checks.climbing import Climbing
from course_utils.audit.checks.clipping import Clipping
from course_utils.audit.checks.closures import Closures
from course_utils.audit.checks.committee import Committee
from course_utils.audit.checks.composing import Composing
from course_utils.audit.checks.decaying import Decaying
from course_utils.audit.checks.denoising import Denoising
from course_utils.audit.checks.derivatives import Derivatives
from course_utils.audit.checks.diagonals import Diagonals
from course_utils.audit.checks.doubled import Doubled
from course_utils.audit.checks.drawing import Drawing
from course_utils.audit.checks.drifting import Drifting
from course_utils.audit.checks.early_means import EarlyMeans
from course_utils.audit.checks.escaping import Escaping
from course_utils.audit.checks.far_off import FarOff
from course_utils.audit.checks.filling import Filling
from course_utils.audit.checks.filters import Filters
from course_utils.audit.checks.flat_columns import FlatColumns
from course_utils.audit.checks.following import Following
from course_utils.audit.checks.forecasting import Forecasting
from course_utils.audit.checks.formulas import Formulas
from course_utils.audit.checks.freezing import Freezing
from course_utils.audit.checks.functional import Functional
from course_utils.audit.checks.functions import Functions
from course_utils.audit.checks.growth import Growth
from course_utils.audit.checks.holdouts import Holdouts
from course_utils.audit.checks.hooks import Hooks
from course_utils.audit.checks.kept_gradients import KeptGradients
from course_utils.audit.checks.last_rounds import LastRounds
from course_utils.audit.checks.leaks import Leaks
from course_utils.audit.checks.learnt_inputs import LearntInputs
from course_utils.audit.checks.loading import Loading
from course_utils.audit.checks.losses import Losses
from course_utils.audit.checks.made_within import MadeWithin
from course_utils.audit.checks.magnitudes import Magnitudes
from course_utils.audit.checks.masks import Masks
from course_utils.audit.checks.measuring import Measuring
from course_utils.audit.checks.members import Members
from course_utils.audit.checks.membership import Membership
from course_utils.audit.checks.misdirected import Misdirected
from course_utils.audit.checks.misreading import Misreading
from course_utils.audit.checks.misspelling import Misspelling
from course_utils.audit.checks.modes import Modes
from course_utils.audit.checks.naming import Naming
from course_utils.audit.checks.noising import Noising
from course_utils.audit.checks.normalizing import Normalizing
from course_utils.audit.checks.numbering import Numbering
from course_utils.audit.checks.numbers import Numbers
from course_utils.audit.checks.opposed import Opposed
from course_utils.audit.checks.outweighing import Outweighing
from course_utils.audit.checks.pacing import Pacing
from course_utils.audit.checks.padded_loss import PaddedLoss
from course_utils.audit.checks.padding import Padding
from course_utils.audit.checks.pairing import Pairing
from course_utils.audit.checks.partial import Partial
from course_utils.audit.checks.passes import Passes
from course_utils.audit.checks.picking import Picking
from course_utils.audit.checks.plateaus import Plateaus
from course_utils.audit.checks.players import Players
from course_utils.audit.checks.preparing import Preparing
from course_utils.audit.checks.pruned import Pruned
from course_utils.audit.checks.quantizing import Quantizing
from course_utils.audit.checks.rates import Rates
from course_utils.audit.checks.ratios import Ratios
from course_utils.audit.checks.reaching import Reaching
from course_utils.audit.checks.recurrence import Recurrence
from course_utils.audit.checks.redrawn import Redrawn
from course_utils.audit.checks.references import References
from course_utils.audit.checks.remaking import Remaking
from course_utils.audit.checks.renormalizing import Renormalizing
from course_utils.audit.checks.repelling import Repelling
from course_utils.audit.checks.replacing import Replacing
from course_utils.audit.checks.reshaping import Reshaping
from course_utils.audit.checks.residuals import Residuals
from course_utils.audit.checks.returning import Returning
from course_utils.audit.checks.rounding import Rounding
from course_utils.audit.checks.rows import Rows
from course_utils.audit.checks.samples import Samples
from course_utils.audit.checks.scales import Scales
from course_utils.audit.checks.schedules import Schedules
from course_utils.audit.checks.seeding import Seeding
from course_utils.audit.checks.selecting import Selecting
from course_utils.audit.checks.selves import Selves
from course_utils.audit.checks.settings import Settings
from course_utils.audit.checks.sharing import Sharing
from course_utils.audit.checks.shifts import Shifts
from course_utils.audit.checks.signs import Signs
from course_utils.audit.checks.slopes import Slopes
from course_utils.audit.checks.sorted_batches import SortedBatches
from course_utils.audit.checks.spent import Spent
from course_utils.audit.checks.spreads import Spreads
from course_utils.audit.checks.squares import Squares
from course_utils.audit.checks.statements import Statements
from course_utils.audit.checks.statistics import Statistics
from course_utils.audit.checks.stepping import Stepping
from course_utils.audit.checks.still_noise import StillNoise
from course_utils.audit.checks.straight import Straight
from course_utils.audit.checks.sums import Sums
from course_utils.audit.checks.temperatures import Temperatures
from course_utils.audit.checks.terms import Terms
from course_utils.audit.checks.ties import Ties
from course_utils.audit.checks.turned import Turned
from course_utils.audit.checks.uncovered import Uncovered
from course_utils.audit.checks.undoing import Undoing
from course_utils.audit.checks.unit_rows import UnitRows
from course_utils.audit.checks.units import Units
from course_utils.audit.checks.unsaved import Unsaved
from course_utils.audit.checks.unused import Unused
from course_utils.audit.checks.validating import Validating
from course_utils.audit.checks.weighing import Weighing
from course_utils.audit.checks.windows import Windows
from course_utils.audit.checks.wrapping import Wrapping
from course_utils.audit.checks.writing import Writing
from course_utils.audit.checks.zero_weights import ZeroWeights
from course_utils.audit.checks.zeroed import Zeroed

CHECKS: tuple[type[Check], ...] = (
    Clearing,
    Stepping,
    Membership,
    Reaching,
    Unused,
    Terms,
    Freezing,
    Misspelling,
    Filters,
    Settings,
    Statements,
    Averages,
    Loading,
    Unsaved,
    Modes,
    Validating,
    Passes,
    Growth,
    Losses,
    Clipping,
    Closures,
    Partial,
    Pairing,
    References,
    Naming,
    Following,
    Straight,
    Quantizing,
    Rates,
    Doubled,
    Drawing,
    Spent,
    Rows,
    Sharing,
    Holdouts,
    Drifting,
    Turned,
    Scales,
    Selecting,
    Measuring,
    Preparing,
    Composing,
    EarlyMeans,
    Remaking,
    MadeWithin,
    Climbing,
    FarOff,
    Misdirected,
    Casting,
    Misreading,
    Forecasting,
    UnitRows,
    Magnitudes,
    Decaying,
    Plateaus,
    Selves,
    SortedBatches,
    PaddedLoss,
    Shifts,
    Signs,
    Opposed,
    Outweighing,
    Redrawn,
    Returning,
    Choosing,
    Picking,
    StillNoise,
    Sums,
    Seeding,
    Schedules,
    Pacing,
    Windows,
    Writing,
    Wrapping,
    Players,
    Hooks,
    Numbers,
    Undoing,
    Pruned,
    Units,
    Rounding,
    Functional,
    Functions,
    Formulas,
    Escaping,
    Samples,
    Derivatives,
    Arguments,
    Recurrence,
    Carrying,
    BothWays,
    Replacing,
    Masks,
    Squares,
    Reshaping,
    Normalizing,
    Leaks,
    Padding,
    Ratios,
    Ties,
    Statistics,
    Cancelling,
    Attending,
    Bounded,
    Repelling,
    Temperatures,
    Weighing,
    Members,
    Filling,
    Renormalizing,
    Spreads,
    Chains,
    Residuals,
    Denoising,
    Diagonals,
    Numbering,
    Zeroed,
    ZeroWeights,
    KeptGradients,
    Noising,
    Slopes,
    LastRounds,
    Uncovered,
    Ascending,
    Committee,
    LearntInputs,
    Adapting,
    FlatColumns,
)
