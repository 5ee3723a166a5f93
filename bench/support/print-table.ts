/** A small table on the terminal, Markdown so that it can go into results.md as it is. */
export function printTable(title: string, columns: readonly string[], rows: ReadonlyArray<ReadonlyArray<string | number>>): void {
  const cells = [columns.map(String), ...rows.map((row) => row.map(cell))];
  const widths = columns.map((_, column) => Math.max(...cells.map((row) => (row[column] ?? '').length)));
  const line = (row: readonly string[]): string => `| ${row.map((text, column) => text.padEnd(widths[column]!)).join(' | ')} |`;
  process.stdout.write(`\n${title}\n\n${line(cells[0]!)}\n|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|\n`);
  for (const row of cells.slice(1)) process.stdout.write(`${line(row)}\n`);
}

function cell(value: string | number): string {
  if (typeof value === 'string') return value;
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en-US') : String(Math.round(value * 100) / 100);
}
