/** Python that looks something up in a JSON file: by a dotted path, or by the words that a path's names hold. */

import { isVerb } from './columns.ts'
import { imports, py } from './python.ts'
import { isStopWord, singular } from './words.ts'

export interface Lookup {
  /** `config.server.port`, `users[0].name`; undefined: by words. */
  readonly path: string | undefined
  readonly words: readonly string[]
}

export function readLookup(text: string): Lookup {
  const path = /[\w$-]+(?:\.[\w$-]+|\[\d+\])+/.exec(text)?.[0]
  const words = (text.toLowerCase().match(/[\p{L}\p{N}_-]+/gu) ?? [])
    .filter((word) => !isStopWord(word) && !isVerb(word) && !/^(key|path|setting|json|look|up)s?$/.test(word))
    .flatMap((word) => [word, singular(word)])
  return { path, words: [...new Set(words)] }
}

export function lookupCode(file: string, lookup: Lookup): string {
  return `${imports('json', 're')}

with open(${py(file)}, encoding="utf-8-sig") as file:
    data = json.load(file)

def walk(value, path=()):
    yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from walk(inner, path + (key,))

def name(path):
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")

${lookup.path === undefined ? byWords(lookup.words) : byPath(lookup.path)}
def short(value):
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= 600 else text[:600] + "…"

print(json.dumps({"count": len(found), "found": [
    {"path": name(path), "type": type(value).__name__, "size": len(value) if isinstance(value, (list, dict)) else None, "value": short(value)}
    for path, value in found[:5]
]}))
`
}

/** The exact path; where there is none, paths that end with it. */
function byPath(path: string): string {
  return `wanted = ${py(path.toLowerCase())}
everything = [(path, value) for path, value in walk(data)]
found = [(path, value) for path, value in everything if name(path).lower() == wanted]
if not found:
    found = [(path, value) for path, value in everything if name(path).lower().endswith("." + wanted)]
`
}

function byWords(words: readonly string[]): string {
  return `wanted = set(${py(words)})
scored = []
for path, value in walk(data):
    if not path or not isinstance(path[-1], str):
        continue
    names = [part for key in path if isinstance(key, str) for part in {key.lower(), *re.split(r"[^a-z0-9]+|(?<=[a-z0-9])(?=[A-Z])", key.lower())}]
    last = {path[-1].lower(), *re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", path[-1])}
    last = {part.lower() for part in last}
    if last & wanted:
        scored.append((len(wanted & set(names) | wanted & last), -len(path), path, value))
best = max((score for score, *_ in scored), default=0)
found = [(path, value) for score, _, path, value in sorted(scored, key=lambda item: -item[1]) if score == best]
`
}
