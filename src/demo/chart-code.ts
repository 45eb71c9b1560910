/** Python that draws a chart as an SVG file, with the standard library only. The values are part of the program. */
import { py } from './python.ts'

export interface Chart {
  readonly path: string
  readonly title: string
  readonly style: 'bar' | 'line'
  readonly points: readonly { readonly label: string; readonly value: number }[]
}

/** Maximum number of points: more could not be distinguished. */
export const MAX_POINTS = 120

export function chartCode(chart: Chart): string {
  const points = chart.points.slice(0, MAX_POINTS).map(({ label, value }) => `    (${py(label)}, ${value}),`)
  return `import json, os
from html import escape

title = ${py(chart.title)}
points = [
${points.join('\n')}
]
${LAYOUT}
${chart.style === 'bar' ? BARS : LINE}
path = ${py(chart.path)}
os.makedirs("outputs", exist_ok=True)
with open(path, "w", encoding="utf-8") as file:
    file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">\\n')
    file.write(f'<rect width="{width}" height="{height}" fill="white"/>\\n' + "\\n".join(shapes) + "\\n</svg>\\n")
print(json.dumps({"file": path, "bytes": os.path.getsize(path), "points": len(points)}))
`
}

const LAYOUT = `width, height, left, bottom, top = 760, 420, 60, 80, 50
low, high = min(0, *(value for _, value in points)), max(0, *(value for _, value in points))
span = (high - low) or 1
step = (width - left - 20) / len(points)

def y(value):
    return top + (height - top - bottom) * (high - value) / span

shapes = [f'<text x="{width / 2}" y="26" font-size="16" text-anchor="middle">{escape(title)}</text>']
for i in range(5):
    value = low + span * i / 4
    shapes.append(f'<line x1="{left}" x2="{width - 20}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>')
    shapes.append(f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.4g}</text>')
every = -(-len(points) // 16)
for i, (label, value) in enumerate(points):
    if i % every == 0:
        x = left + step * (i + 0.5)
        shapes.append(f'<text x="{x:.1f}" y="{height - bottom + 16}" text-anchor="end" transform="rotate(-35 {x:.1f} {height - bottom + 16})">{escape(label[:18])}</text>')
`

const BARS = `for i, (label, value) in enumerate(points):
    x, edge = left + step * (i + 0.12), sorted((y(value), y(0)))
    shapes.append(f'<rect x="{x:.1f}" y="{edge[0]:.1f}" width="{step * 0.76:.1f}" height="{edge[1] - edge[0]:.1f}" fill="#4477aa"><title>{escape(label)}: {value:.6g}</title></rect>')
`

const LINE = `corners = " ".join(f"{left + step * (i + 0.5):.1f},{y(value):.1f}" for i, (_, value) in enumerate(points))
shapes.append(f'<polyline points="{corners}" fill="none" stroke="#4477aa" stroke-width="2"/>')
for i, (label, value) in enumerate(points):
    shapes.append(f'<circle cx="{left + step * (i + 0.5):.1f}" cy="{y(value):.1f}" r="3" fill="#4477aa"><title>{escape(label)}: {value:.6g}</title></circle>')
`
