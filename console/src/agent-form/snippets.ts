/** An API call as code for a terminal or a program. */
import type { Language } from '../ui/code.tsx'

export interface Snippet {
  readonly name: 'curl' | 'TypeScript' | 'Python'
  readonly language: Language
  readonly text: string
}

export function snippets(body: object, origin = location.origin): readonly Snippet[] {
  const json = JSON.stringify(body, null, 2)
  return [
    {
      name: 'curl',
      language: 'bash',
      text: `curl -s ${origin}/v1beta/interactions \\
  -H "x-svc-api-key: $ERRAND_API_KEY" \\
  -H 'Api-Revision: 2026-05-20' \\
  -H 'Content-Type: application/json' \\
  --data-binary @- <<'JSON'
${json}
JSON`,
    },
    {
      name: 'TypeScript',
      language: 'typescript',
      text: `const response = await fetch('${origin}/v1beta/interactions', {
  method: 'POST',
  headers: {
    'x-svc-api-key': process.env.ERRAND_API_KEY!,
    'Api-Revision': '2026-05-20',
    'Content-Type': 'application/json',
  },
  body: JSON.stringify(${indent(json)}),
})
const interaction = await response.json()
if (!response.ok) throw new Error(interaction.error.message)
console.log(interaction.output)`,
    },
    {
      name: 'Python',
      language: 'python',
      text: `import json, os, urllib.request

body = ${python(body)}
request = urllib.request.Request(
    "${origin}/v1beta/interactions",
    data=json.dumps(body).encode(),
    headers={
        "x-svc-api-key": os.environ["ERRAND_API_KEY"],
        "Api-Revision": "2026-05-20",
        "Content-Type": "application/json",
    },
)
with urllib.request.urlopen(request) as response:
    print(json.load(response)["output"])`,
    },
  ]
}

/** A JSON value as a Python literal. */
function python(value: unknown, margin = ''): string {
  const inner = `${margin}    `
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value !== 'object') return JSON.stringify(value)
  const lines = Array.isArray(value)
    ? value.map((entry) => python(entry, inner))
    : Object.entries(value).map(([key, entry]) => `${JSON.stringify(key)}: ${python(entry, inner)}`)
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return lines.length === 0
    ? `${open}${close}`
    : `${open}\n${lines.map((line) => `${inner}${line},\n`).join('')}${margin}${close}`
}

function indent(text: string): string {
  return text.replaceAll('\n', '\n  ')
}
