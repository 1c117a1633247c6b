// Runs the cases of a client script: its exported functions; reports each on a line.
const script = await import(process.argv[2])

for (const [name, run] of Object.entries(script)) {
  const report = await run().catch((error) => ({ failed: `${error.stack}` }))
  console.log(`CASE ${JSON.stringify({ case: name, ...report })}`)
}
process.exit(0)
