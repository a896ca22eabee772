//! Requests that are sent again, answers that are asked for later, and conversations that are erased.
