/** Exa through its search endpoint, with highlights as snippets (exa.ai/docs/reference/search). */
import type { Egress } from '../egress/port.ts'
import type { Search } from './port.ts'
import { ask } from './request.ts'
import { cleanResults, listIn } from './results.ts'

export function createExa(egress: Egress, baseUrl: string, apiKey: string): Search {
  return {
    description: `Exa at ${baseUrl}`,
    async search(query, terms) {
      const body = { query, type: 'auto', numResults: terms.maxResults, contents: { highlights: true } }
      const headers = { 'x-api-key': apiKey }
      const answer = await ask(egress, { url: new URL(`${baseUrl}/search`), method: 'POST', headers, body }, terms)
      if (!answer.ok) return { ok: false, message: answer.message }
      const found = listIn(answer.json, 'results').map(({ title, url, highlights, text, publishedDate }) => {
        return { title, url, snippet: Array.isArray(highlights) ? highlights.join(' … ') : text, date: publishedDate }
      })
      return { ok: true, results: cleanResults(found, terms.maxResults) }
    },
  }
}
