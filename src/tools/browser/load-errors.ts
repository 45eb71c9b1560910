/** Chromium's network errors as the end of a sentence for the model: "… can't be opened: ". */

const REASONS: Readonly<Record<string, string>> = {
  ERR_NAME_NOT_RESOLVED: 'there is no host of that name',
  ERR_CONNECTION_REFUSED: 'the host refused the connection',
  ERR_CONNECTION_RESET: 'the connection was reset',
  ERR_CONNECTION_CLOSED: 'the connection was closed',
  ERR_EMPTY_RESPONSE: 'the host closed the connection without an answer',
  ERR_TUNNEL_CONNECTION_FAILED: 'the host can’t be reached',
  ERR_PROXY_CONNECTION_FAILED: 'the browser has no network connection',
  ERR_TIMED_OUT: 'the host did not answer in time',
  ERR_CONNECTION_TIMED_OUT: 'the host did not answer in time',
  ERR_TOO_MANY_REDIRECTS: 'it redirects in a loop',
  ERR_SSL_PROTOCOL_ERROR: 'the TLS handshake failed',
  ERR_HTTP_RESPONSE_CODE_FAILURE: 'the host answered with an error and no page',
  ERR_BLOCKED_BY_RESPONSE: 'the host does not allow it to be shown',
  ERR_UNSAFE_PORT: 'browsers block its port',
  ERR_UNSAFE_REDIRECT: 'it redirects to an address that is not http or https',
  ERR_ABORTED: 'the host answered without a page, or loading was aborted',
}

/** `errorText`: as Chromium reports it, such as `net::ERR_TIMED_OUT`. */
export function explainLoadError(errorText: string, hostname: string): string {
  const code = /^net::(ERR_[A-Z_]+)$/.exec(errorText)?.[1]
  if (code?.startsWith('ERR_CERT_')) return `the certificate of ${hostname} is not trusted (${code}).`
  return `${REASONS[code ?? ''] ?? 'loading failed'}${code ? ` (${code})` : ''}.`
}
