/**
 * Checks how output of code is shown to the caller and the model: progress bars in their final state, wide tables,
 * figures as files.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { until } from '../sandbox/fixture.ts'
import { type Server, startServer } from '../support/server.ts'
import { bash, type Call, javascript, outputsOf, python, scripted, toolRunner } from '../support/tool-run.ts'

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  server = await startServer({ provider, config: { sandbox: { pool: 0, memoryMiB: 1024, outputBytes: 4096 } } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

const run = toolRunner(
  () => server,
  () => provider,
)

describe('a progress bar', () => {
  const bars: readonly [string, Call, string][] = [
    [
      'as tqdm draws it, in Python',
      python(`import sys
for i in range(3001):
    sys.stderr.write(f"\\r{i / 30:3.0f}%|{'█' * (i // 300):10}| {i}/3000 [00:00<00:00, 9000.00it/s]")
sys.stderr.write("\\n")
print("trained")`),
      '100%|██████████| 3000/3000 [00:00<00:00, 9000.00it/s]\ntrained',
    ],
    [
      'as npm draws it, in JavaScript',
      javascript(`const { stdout } = process
for (let i = 0; i <= 3000; i++) stdout.write(\`\\x1b[1G\\x1b[0K\\x1b[32m\${'⠙⠹⠸'[i % 3]}\\x1b[0m packages \${i}\`)
void stdout.write('\\x1b[1G\\x1b[0Kadded 3000 packages\\n')`),
      'added 3000 packages',
    ],
    [
      'as curl draws it, in bash',
      bash(`echo '  % Total    % Received'
for i in {0..3000}; do printf '\\r%3d 3000 %3d %4d' $((i / 30)) $((i / 30)) $i >&2; done
echo >&2; echo saved`),
      '  % Total    % Received\n100 3000 100 3000\nsaved',
    ],
  ]
  it.each(bars)(
    '%s, appears in its final state in the result, and with a few updates in the stream',
    async (_, call, kept) => {
      const instruction = scripted(provider, [call])
      const stream = await server.stream('/v1beta/interactions:stream', { instruction, tools: ['code_execution'] })
      const events = await stream.all()
      const { interactionId } = events.at(-1)!.data
      const { executionTrace } = (await server.get(`/v1beta/interactions/${interactionId}`)).body
      expect(outputsOf(executionTrace)).toEqual([kept])
      expect(provider.requests.at(-1)!.body.messages.at(-1)!.content).toBe(kept)
      const live = events.filter(({ event }) => event === 'tool_output').map(({ data }) => data.text)
      expect(live.join('')).toMatch(new RegExp(`${kept.split('\n').at(-1)}\\n$`))
      expect(live.join('')).not.toMatch(/[\r\b\x1b]/)
      expect(live.join('').length).toBeLessThan(3 * 4096)
    },
  )
})

describe('with the Debian packages for Python', () => {
  it('an unsaved figure becomes an output file, once, and the model is informed', async () => {
    const { body, outputs } = await run([
      python('import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.title("Squares")\nplt.show()'),
      python('figure, axes = plt.subplots()\naxes.bar(["a", "b"], [1, 2])\nfigure.savefig("outputs/bars.png")'),
      python('from PIL import Image\nImage.new("RGB", (4, 3), "red")'),
    ])
    expect(outputs[0]).toContain('[figure saved: outputs/figure-1.png]')
    expect(outputs[1]).not.toContain('figure saved')
    expect(outputs[2]).toContain('[image saved: outputs/image-1.png]')
    const names = body.files.map(({ name }: { name: string }) => name)
    expect(names).toEqual(['bars.png', 'figure-1.png', 'image-1.png'])
    for (const { url, mimeType } of body.files) {
      expect(mimeType).toBe('image/png')
      const bytes = Buffer.from(await (await fetch(url)).arrayBuffer())
      expect(bytes.subarray(1, 4).toString()).toBe('PNG')
    }
  })

  it('a new session has them preloaded after an earlier run imported them', async () => {
    const code = `import sys; known = 'pandas' in sys.modules
import numpy, pandas as pd, matplotlib.pyplot as plt
plt.plot(pd.Series(numpy.arange(3)) ** 2)
print('known' if known else 'new')`
    await until(async () => {
      const { body, outputs } = await run([python(code), python('numpy.random.seed(1); pd.Series([1]).sum()')])
      expect(outputs).toEqual([
        expect.stringMatching(/^(known|new)\n\[figure saved: outputs\/figure-1\.png\]$/),
        expect.stringMatching(/^1$/),
      ])
      expect(body.files.map(({ name }: { name: string }) => name)).toEqual(['figure-1.png'])
      return outputs[0]!.startsWith('known') || process.getuid?.() !== 0
    })
  })

  it('a table with many columns is shown with each row on one line', async () => {
    const columns = '{f"quarter {i}": [i * 1000.5, -i] for i in range(9)}'
    const { outputs } = await run([
      python(`import pandas as pd\ntable = pd.DataFrame(${columns})\ntable`),
      python('print(table)\ntable.describe()'),
    ])
    expect(outputs[0]!.split('\n')).toHaveLength(3)
    expect(outputs[0]).toMatch(/quarter 0 .*quarter 8\n0 .*8004\.0\n1 .*-8/)
    expect(outputs[1]).toContain(outputs[0])
    expect(outputs[1]).toContain('mean')
  })
})
