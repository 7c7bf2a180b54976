"""How is the model reached and metered? One pinned model behind a proxy that counts and records.

`proxy` serves harnesses over a unix socket, `session` keeps one caller's caps and record, `line`
is the pinned upstream with its retries, and the upstreams are the ways to a model: litellm, an
OpenAI-compatible server, the embedded model, or a recording.
"""
