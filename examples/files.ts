// Files in and out: a CSV file goes into the sandbox, the chart that the run makes is saved beside this script's caller.
import { Errand } from 'errand-client'
import { inputFileFrom, saveFile } from 'errand-client/node'

const errand = new Errand()
const weather = await inputFileFrom(new URL('seattle-weather.csv', import.meta.url).pathname)

const { output, files } = await errand.interactions.create({
  instruction: 'What was the average maximum temperature by month in seattle-weather.csv? Plot it, too.',
  tools: ['code_execution'],
  files: [weather],
})
console.log(output)
for (const file of files) {
  await saveFile(errand, file, file.name) // checked against its sha256
  console.log(`saved ${file.name}`)
}
