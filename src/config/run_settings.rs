//! The settings of one run: those of the configuration, narrowed by its tenant, its request and what can be offered.

use super::TenantConfig;
use crate::adapt::{self, ConsultationLimits, ExecutionLevel, ExecutionMode};
use crate::run::{ApprovalPolicy, PlanningMaker, RequestOptions, Settings};

/// The abilities that this process can offer to a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunOffer {
    /// How many models are configured for decisions.
    pub(crate) decision_models: usize,
    pub(crate) executes_programs: bool,
    /// How long scenes may be ranked by embeddings before a plan is made; 0 where they are not.
    pub(crate) embeddings_timeout_ms: u32,
}

impl TenantConfig {
    /// The settings that a run of this tenant freezes. A tenant and a request can lower the configured level, mode and
    /// maker, and raise none of them. `approval` is the tenant's policy.
    pub(crate) fn run_settings(
        &self,
        configured: &Settings,
        approval: ApprovalPolicy,
        options: RequestOptions,
        offer: RunOffer,
    ) -> Settings {
        let level = ExecutionLevel::narrowed(configured.level, self.level);
        let level = ExecutionLevel::narrowed(level, options.level);
        let mode = ExecutionMode::narrowed(configured.mode, self.mode);
        let mode = ExecutionMode::narrowed(mode, options.mode);
        let voters = u32::try_from(offer.decision_models).unwrap_or(u32::MAX);
        let vote = configured.consultations.vote.min(voters).max(1);
        let maker = configured.maker.narrowed(self.maker).narrowed(options.maker);
        let has_programs = configured.program_model == Some(true) && offer.executes_programs;
        // A planner is offered programs only where they can be written and executed.
        let maker = if maker == PlanningMaker::Auto && !has_programs { PlanningMaker::Scenes } else { maker };
        Settings {
            maker,
            program_model: configured.program_model.filter(|_| maker != PlanningMaker::Scenes),
            consultations: ConsultationLimits { vote, ..configured.consultations },
            approval,
            confirm_at_least: self.confirm,
            learn: self.learn.unwrap_or(configured.learn),
            level,
            mode: adapt::completed(level, mode),
            embeddings_timeout_ms: offer.embeddings_timeout_ms,
            ..configured.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::LearnMode;

    const OFFER: RunOffer =
        RunOffer { decision_models: 3, executes_programs: true, embeddings_timeout_ms: 0 };

    fn settings(
        configured: &Settings,
        tenant: &TenantConfig,
        options: RequestOptions,
        offer: RunOffer,
    ) -> Settings {
        tenant.run_settings(configured, ApprovalPolicy::default(), options, offer)
    }

    #[test]
    fn tenants_and_requests_lower_the_level_and_never_raise_it() {
        let levels = [ExecutionLevel::Basic, ExecutionLevel::Intelligent, ExecutionLevel::Autonomous];
        for configured in levels {
            for (own, asked) in levels.into_iter().flat_map(|own| levels.map(|asked| (own, asked))) {
                let configured = Settings { level: Some(configured), ..Settings::default() };
                let tenant = TenantConfig { level: Some(own), ..TenantConfig::default() };
                let options = RequestOptions { level: Some(asked), ..RequestOptions::default() };
                let lowest = configured.level.min(Some(own)).min(Some(asked));
                let settings = settings(&configured, &tenant, options, OFFER);
                // A level without a mode has one.
                assert_eq!((settings.level, settings.mode), (lowest, Some(ExecutionMode::Adaptive)));
            }
        }
    }

    #[test]
    fn programs_are_offered_to_planners_only_where_they_can_be_written_and_executed() {
        let auto =
            |program_model| Settings { maker: PlanningMaker::Auto, program_model, ..Settings::default() };
        let (tenant, options) = (TenantConfig::default(), RequestOptions::default());
        for (program_model, executes_programs) in
            [(Some(true), true), (Some(true), false), (Some(false), true)]
        {
            let offer = RunOffer { executes_programs, ..OFFER };
            let settings = settings(&auto(program_model), &tenant, options, offer);
            let is_offered = program_model == Some(true) && executes_programs;
            let expected = if is_offered { PlanningMaker::Auto } else { PlanningMaker::Scenes };
            assert_eq!((settings.maker, settings.program_model.is_some()), (expected, is_offered));
        }
        // A plan that has to be a program fails where it cannot be executed, and no scene is used in its place.
        let code = Settings { maker: PlanningMaker::Code, ..auto(Some(true)) };
        let offer = RunOffer { executes_programs: false, ..OFFER };
        assert_eq!(settings(&code, &tenant, options, offer).maker, PlanningMaker::Code);
    }

    #[test]
    fn no_more_models_vote_than_there_are() {
        for (vote, decision_models, votes) in [(3, 2, 2), (1, 2, 1), (3, 0, 1)] {
            let consultations = ConsultationLimits { vote, ..ConsultationLimits::default() };
            let configured = Settings { consultations, ..Settings::default() };
            let offer = RunOffer { decision_models, ..OFFER };
            let settings = settings(&configured, &TenantConfig::default(), RequestOptions::default(), offer);
            assert_eq!(settings.consultations.vote, votes);
        }
    }

    #[test]
    fn learning_is_what_the_tenant_says() {
        let configured = Settings { learn: LearnMode::Reuse, ..Settings::default() };
        let tenant = TenantConfig { learn: Some(LearnMode::Off), ..TenantConfig::default() };
        let settings = settings(&configured, &tenant, RequestOptions::default(), OFFER);
        assert_eq!(settings.learn, LearnMode::Off);
    }
}
