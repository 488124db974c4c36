// Reads a JSON array of Mermaid diagrams from standard input and parses each with each parser. Prints a JSON array of an entry for each
// diagram and parser: the error, or the texts of the nodes of a flowchart.
import {JSDOM} from 'jsdom';

const {window} = new JSDOM('<!DOCTYPE html><body></body>');
globalThis.window = window;
globalThis.document = window.document;

const parsers = {};
for (const name of ['mermaid10', 'mermaid11']) {
  parsers[name] = (await import(name)).default;
  parsers[name].initialize({startOnLoad: false, securityLevel: 'strict'});
}

async function read(parser, diagram) {
  await parser.parse(diagram);
  const {db} = await parser.mermaidAPI.getDiagramFromText(diagram);
  const nodes = db.getVertices?.() ?? [];
  return {nodes: [...(nodes.values?.() ?? Object.values(nodes))].map((node) => node.text)};
}

let input = '';
for await (const chunk of process.stdin) input += chunk;

const answers = [];
for (const diagram of JSON.parse(input)) {
  for (const [name, parser] of Object.entries(parsers)) {
    let answer;
    try {
      answer = await read(parser, diagram);
    } catch (error) {
      answer = {error: String(error?.message ?? error)};
    }
    answers.push({parser: name, diagram, ...answer});
  }
}
process.stdout.write(JSON.stringify(answers) + '\n');
