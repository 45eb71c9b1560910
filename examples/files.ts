// Input and output files: sends a CSV file to the sandbox and saves the chart of the run below ./results.
import { Errand } from 'errand-client'
import { inputFileFrom, saveFiles } from 'errand-client/node'

const errand = new Errand()
const weather = await inputFileFrom(new URL('seattle-weather.csv', import.meta.url).pathname)

const { interactionId, output, files } = await errand.interactions.create({
  instruction: 'What was the average maximum temperature by month in seattle-weather.csv? Plot it, too.',
  tools: ['code_execution'],
  files: [weather],
})
console.log(output)
// One directory for each run: saveFiles does not replace existing files.
for (const path of await saveFiles(errand, files, `results/${interactionId}`)) console.log(`saved ${path}`)
