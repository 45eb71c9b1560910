/** Times as they stand on the wire: RFC 3339, UTC. */

/** `ms`: since 1970. */
export function rfc3339(ms: number): string {
  return new Date(ms).toISOString()
}
