/** Paths of request URLs. */

/** Decodes colons in the path: `/v1beta/interactions%3Astream?x=%3A` → `/v1beta/interactions:stream?x=%3A` */
export function decodeColons(url: string): string {
  const end = url.indexOf('?')
  const path = end === -1 ? url : url.slice(0, end)
  return path.includes('%3') ? path.replace(/%3a/gi, ':') + url.slice(path.length) : url
}

/** The URL without its query, which may contain a signature. */
export function pathOf(url: string): string {
  const end = url.indexOf('?')
  return end === -1 ? url : url.slice(0, end)
}
