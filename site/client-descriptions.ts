/** Descriptions of the clients' methods, for both languages. test/docs/clients.test.ts fails for a method without one. */

export interface Description {
  readonly text: string
  /** Errors besides those that every call can have. */
  readonly errors?: string
}

/** By `resource.method`, in camel case. Both clients have the same methods, except where their languages differ. */
export const DESCRIPTIONS: Readonly<Record<string, Description>> = {
  'interactions.create': {
    text: 'Starts a run, waits for its end, and returns the interaction. Resumes after a broken connection. Sends an `Idempotency-Key`, so retries of the request never start a second run. Returns normally if the run was cancelled (`status` is `cancelled`).',
    errors:
      '`ApiError` of the matching class if the request was refused or the run failed; with the id of the interaction if a run failed. A failed run is never started again: see `retryable`.',
  },
  'interactions.start': {
    text: 'Starts a run in the background and returns as soon as the server has accepted it. Pass its id to `retrieve`, `events`, `wait` or `cancel`.',
  },
  'interactions.stream': {
    text: 'Starts a run and returns its events as an `InteractionStream` (server-sent events). The request is sent when the first event is read.',
  },
  'interactions.events': {
    text: 'Follows an existing interaction from the event after number `after` (default: from the first), live until its end. Works during the run and after it.',
    errors: '`NotFoundError` if there is no such interaction.',
  },
  'interactions.wait': {
    text: 'Waits for the end of a run that was started elsewhere, and returns the interaction.',
    errors: 'As `create`.',
  },
  'interactions.retrieve': {
    text: 'Returns an interaction as it is now. Each call signs new download links for `files`.',
    errors: '`NotFoundError` if there is no such interaction.',
  },
  'interactions.list': {
    text: 'Lists interactions, newest first unless `order` says otherwise. Filters: agent, requested model, status, labels.',
  },
  'interactions.cancel': {
    text: 'Cancels a run. Returns when no process of the run is left.',
    errors: '`ConflictError` if the run ended in another way first.',
  },
  'interactions.approve': {
    text: 'Decides on tool calls that wait for a person: on those listed in `decisions`, or the same decision for all that wait.',
    errors: '`ConflictError` if a different decision was made before, or if the run has ended.',
  },
  'interactions.delete': {
    text: 'Removes an ended interaction with its events and files.',
    errors: '`ConflictError` if the run has not ended.',
  },
  'interactions.audit': {
    text: 'Lists the outside hosts that were contacted, or refused, on behalf of the run, oldest first.',
  },
  'interactions.deliveries': {
    text: 'Returns the delivery attempts of the interaction’s webhook: time, status, error, and the time of the next attempt.',
  },
  'agents.create': {
    text: 'Stores an agent. Not retried after a broken connection, because the agent may exist then.',
    errors: '`ConflictError` if `id` is taken.',
  },
  'agents.retrieve': { text: 'Returns the latest version of an agent.', errors: '`NotFoundError`.' },
  'agents.list': { text: 'Lists agents. Filters: model, labels.' },
  'agents.update': {
    text: 'Changes the given fields and stores a new version. A null clears a field, lists are replaced, `policy` and `labels` are merged by key. Pass `etag` to change only the version that you read.',
    errors: '`PreconditionFailedError` if `etag` is not the current one.',
  },
  'agents.delete': { text: 'Deletes an agent. Interactions that used it stay readable.', errors: '`NotFoundError`.' },
  'agents.versions': { text: 'Lists the versions of an agent, newest first.' },
  'agents.version': { text: 'Returns one version of an agent.', errors: '`NotFoundError`.' },
  'skills.upload': {
    text: 'Uploads a skill as a zip, with `SKILL.md` at its root or in its one top folder. New content under the same name is the next version; the newest content again is the same version.',
    errors: '`InvalidRequestError` for a zip that is not a skill, `PayloadTooLargeError`.',
  },
  'skills.retrieve': {
    text: 'Returns a skill: `pdf` for its newest version, `pdf@3` for version 3.',
    errors: '`NotFoundError`.',
  },
  'skills.list': { text: 'Lists the skills of the project and of the server.' },
  'skills.versions': { text: 'Lists the versions of a skill.' },
  'skills.file': {
    text: 'Returns one file of a skill, with its `text` if it is text of at most 256 KiB.',
    errors: '`NotFoundError`.',
  },
  'skills.delete': { text: 'Deletes all versions of a skill, or one: `pdf@3`.', errors: '`NotFoundError`.' },
  'credentials.create': {
    text: 'Stores a secret, encrypted. No call reads it back. Set the allowed hosts: without them the secret can be sent to any host.',
    errors: '`ConflictError` if `id` is taken.',
  },
  'credentials.retrieve': { text: 'Returns a credential without its secret.', errors: '`NotFoundError`.' },
  'credentials.list': { text: 'Lists the credentials of the project, without their secrets.' },
  'credentials.update': {
    text: 'Changes a credential. A new secret, or a new type of authentication, replaces the old one for all later requests.',
    errors: '`NotFoundError`.',
  },
  'credentials.delete': { text: 'Deletes a credential.', errors: '`NotFoundError`.' },
  'files.download': {
    text: 'Downloads an output file completely and checks its SHA-256. Download links expire after an hour: `retrieve` the interaction again for new ones.',
    errors: '`ErrandError` if the SHA-256 differs, `NotFoundError` if the link has expired.',
  },
  'files.text': {
    text: 'Downloads an output file, checks its SHA-256, and returns its text.',
    errors: 'As `download`.',
  },
  'files.open': {
    text: 'Returns the HTTP response of a download, to read the body as a stream. Its SHA-256 is not checked.',
  },
  'files.save': {
    text: 'Downloads output files into a directory, checks each SHA-256, and returns the paths. Creates the directory and the subfolders.',
    errors:
      '`ErrandError` before the first download if a name leaves the directory, if a path goes through a symbolic link, or if a file exists and `overwrite` is not set.',
  },
  'errand.server': { text: 'Returns the models, tools, limits and isolation of the server.' },
  'errand.close': { text: 'Closes the HTTP connections, except those of an HTTP client that you passed.' },
  'stream.interactionId': { text: 'The id of the interaction. Empty until the server has accepted it.' },
  'stream.lastEventId': {
    text: 'The number of the last event that you read. Pass it to `interactions.events` to resume.',
  },
  'stream.text': { text: 'Yields the fragments of the answer only.' },
  'stream.final': {
    text: 'Reads to the end and returns the whole interaction.',
    errors: '`ApiError` of the matching class if the run failed.',
  },
  'stream.cancel': {
    text: 'Cancels the run on the server. Returns when its sandbox is gone; the stream then ends with `completed`.',
    errors: '`ConnectionError` before the first event.',
  },
  'stream.close': { text: 'Stops reading. The run continues.' },
  'list.page': { text: 'Returns the items of the first page and the token of the next page.' },
  'list.pages': { text: 'Yields the pages, each with `items` and `nextPageToken`.' },
  inputFile: {
    text: 'Makes an input file from a text or bytes. `name` is its path in the working directory. Inline files have 10 MiB in total by default: pass larger ones by `url`.',
  },
  inputFileFrom: { text: 'Makes an input file from a file on disk.' },
  saveFiles: {
    text: 'Downloads output files into a directory, checks each SHA-256, and returns the paths. Creates the directory and the subfolders. Imported from `errand-client/node`.',
    errors:
      '`ErrandError` before the first download if a name leaves the directory, if a path goes through a symbolic link, or if a file exists and `overwrite` is not set.',
  },
  verifyWebhook: {
    text: 'Checks the signature and the age of a webhook and returns its event. Pass the body as it was received, before any JSON parser. The same event can arrive more than once.',
    errors: '`WebhookSignatureError` if the signature is missing, wrong, or too old.',
  },
}
