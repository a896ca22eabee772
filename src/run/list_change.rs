//! Unclear replies to questions about lists: a model is asked what a reply changes in the listed items, and the
//! question is asked again with the changed lists. A model's reading approves nothing.

use super::action::Action;
use super::approval::{Approval, ApprovalSubject, EditedCall, ListChangeWords};
use super::event::{Event, Subject};
use super::next::record;
use super::state::{DueQuestion, RunState};

impl RunState {
    /// The open approval of a call, with its ordinal and the user's reply, if a model is asked how the reply changes
    /// its lists.
    pub fn list_change(&self, call: u32) -> Option<(u32, &Approval, &ListChangeWords)> {
        let about = ApprovalSubject::Call { call };
        let mut open =
            self.approvals.iter().filter(|(_, approval)| approval.is_open() && approval.matter == about);
        open.find_map(|(number, approval)| Some((*number, approval, approval.words.as_ref()?)))
    }

    /// Returns whether a model may be asked what unclear words change, because the run waits for nothing but a question
    /// about lists.
    pub fn may_read_list_change(&self) -> bool {
        let question = self.only_question_to_user().filter(|(_, needed)| !needed.lists.is_empty());
        self.settings().node_model == Some(true)
            && question.is_some_and(|(call, _)| self.may_ask(Subject::Node { step: call.step }))
    }

    /// The question what the user's reply changes, or its end without an answer.
    pub(super) fn list_change_actions(&self, call: u32) -> Vec<Action> {
        let (Some((number, approval, _)), Some(step)) =
            (self.list_change(call), self.calls.get(&call).map(|call| call.step))
        else {
            return Vec::new();
        };
        let subject = Subject::Node { step };
        match self.due_question(subject, self.settings().max_retries) {
            DueQuestion::GiveUp(_) => vec![record(Event::ApprovalLapsed {
                approval: number,
                matter: approval.matter,
                why: vec!["no model understood the reply".to_owned()],
                needed: approval.needed.clone(),
                edited: None,
                read: Some(self.tries(subject).last().copied().unwrap_or(0)),
            })],
            due => self.question_actions(due, subject),
        }
    }

    /// The words may be read only if a question about lists waits for the user, and no other words are being read.
    pub(super) fn admit_list_change(&self, number: u32) -> Result<(), String> {
        let approval = self.approvals.get(&number).filter(|a| a.is_open() && a.words.is_none());
        match approval.is_some_and(|a| a.needed.by_user && !a.needed.lists.is_empty()) {
            true => Ok(()),
            false => Err("no question about lists waits for the user".to_owned()),
        }
    }

    /// Checks what a model read: it must be the reply that is due, and change only what the question lists.
    pub(super) fn admit_lapse_by_words(
        &self,
        event: &Event,
        number: u32,
        read: u32,
        edited: Option<&EditedCall>,
    ) -> Result<(), String> {
        let approval = self.approvals.get(&number).filter(|a| a.is_open() && a.words.is_some());
        let approval = approval.ok_or("no words about it are read")?;
        let ApprovalSubject::Call { call } = approval.matter else {
            return Err("no call waits for it".to_owned());
        };
        let call = self.calls.get(&call).ok_or("there is no such call")?;
        let due = Action::Read { call: read, subject: Subject::Node { step: call.step } };
        match (self.next().contains(&due), edited) {
            (true, Some(edited)) => approval.needed.check_edit(&call.requested.arguments, &edited.arguments),
            (true, None) => Ok(()),
            (false, _) => self.is_requested(event),
        }
    }

    pub(super) fn begin_list_change(&mut self, number: u32, by: &str, text: &str) {
        if let Some(approval) = self.approvals.get_mut(&number) {
            approval.words = Some(ListChangeWords { by: by.to_owned(), text: text.to_owned() });
        }
        self.unread_words = None;
        self.leave_waiting();
    }

    pub(super) fn end_list_change(&mut self, matter: ApprovalSubject, understood: bool) {
        let ApprovalSubject::Call { call } = matter else { return };
        if let Some(step) = self.calls.get(&call).map(|call| call.step) {
            self.use_reply_about(Subject::Node { step });
        }
        self.unread_words = (!understood).then_some(call);
    }
}
