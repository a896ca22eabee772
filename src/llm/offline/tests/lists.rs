//! Several values of one kind become several calls.
