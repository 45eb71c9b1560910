/** Addresses as they come in: the path without its query, colons decoded. */

/** `/v1beta/interactions%3Astream?x=%3A` → `/v1beta/interactions:stream?x=%3A` */
export function decodeColons(url: string): string {
  const end = url.indexOf('?')
  const path = end === -1 ? url : url.slice(0, end)
  return path.includes('%3') ? path.replace(/%3a/gi, ':') + url.slice(path.length) : url
}

/** Without the query, which may hold a signature. */
export function pathOf(url: string): string {
  const end = url.indexOf('?')
  return end === -1 ? url : url.slice(0, end)
}
