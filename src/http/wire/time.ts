/** Times in JSON bodies: RFC 3339, UTC. */

/** `ms`: milliseconds since the Unix epoch. */
export function rfc3339(ms: number): string {
  return new Date(ms).toISOString()
}
