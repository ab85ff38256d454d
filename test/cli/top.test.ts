import { describe, expect, it } from 'vitest';
import { renderFrame } from '../../src/cli/top/frame.ts';
import { createReadings } from '../../src/cli/top/readings.ts';
import { parseExposition } from '../../src/doctor/exposition.ts';

const OPTIONS = { width: 100, height: 40, color: false, source: 'host:1', now: 0, problem: null };

function readings(before: string, now: string, seconds = 2) {
  return createReadings(
    { samples: parseExposition(now), at: 1000 * seconds },
    { samples: parseExposition(before), at: 0 },
  );
}

describe('parseExposition', () => {
  it('parses labels with escapes, special numbers and timestamps', () => {
    const samples = parseExposition(
      '# HELP a Text.\n# TYPE a gauge\na{x="1",y="q\\"\\\\\\n}"} 1.5e3 1700000000\nb +Inf\nb{} NaN\nnot a sample\n',
    );
    expect(samples.get('a')).toEqual([{ labels: { x: '1', y: 'q"\\\n}' }, value: 1500 }]);
    expect(samples.get('b')?.map(({ value }) => value)).toEqual([Number.POSITIVE_INFINITY, Number.NaN]);
    expect(samples.size).toBe(2);
  });
});

describe('readings', () => {
  it('sum the rates of series, including a counter that was reset', () => {
    const { rate } = readings('m{a="1"} 10\nm{a="2"} 100\n', 'm{a="1"} 14\nm{a="2"} 6\n');
    expect(rate('m')).toBe((4 + 6) / 2);
    expect(rate('m', { a: '1' })).toBe(2);
  });

  it('have the quantile and the mean of the observations between them', () => {
    const histogram = (low: number, high: number, sum: number) =>
      `h_bucket{le="0.1"} ${low}\nh_bucket{le="1"} ${high}\nh_bucket{le="+Inf"} ${high}\nh_sum ${sum}\nh_count ${high}\n`;
    const { mean, quantile } = readings(histogram(1000, 1000, 10), histogram(1050, 1100, 40));
    expect(quantile('h', 0.5)).toBe(0.1);
    expect(quantile('h', 0.99)).toBe(1);
    expect(mean('h')).toBeCloseTo(0.3);
  });

  it('have no rate after one scrape', () => {
    const single = createReadings({ samples: parseExposition('m 5\n'), at: 0 }, null);
    expect([single.rate('m'), single.mean('h'), single.value('m')]).toEqual([null, null, 5]);
  });
});

describe('a frame', () => {
  const sites = Array.from(
    { length: 30 },
    (_, n) => `postrider_delivery_site_suspended_seconds{site="mx${n}.example"} ${n}`,
  );
  const text = `postrider_queue_messages 7\npostrider_delivery_suspended_sites 30\n${sites.join('\n')}\n`;

  it.each([
    [120, 60],
    [80, 24],
    [40, 10],
    [10, 2],
  ])('fits into %i columns and %i rows', (width, height) => {
    const lines = renderFrame(readings(text, text), { ...OPTIONS, width, height });
    expect(lines.length).toBeLessThanOrEqual(height);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(width);
  });

  it('shows why it is not current, and the last readings', () => {
    const lines = renderFrame(readings(text, text), { ...OPTIONS, problem: 'cannot be read' });
    expect(lines[1]).toBe('cannot be read');
    expect(lines.join('\n')).toContain('Queue       7 ');
    expect(renderFrame(null, { ...OPTIONS, problem: 'cannot be read' })).toHaveLength(2);
  });

  it('has no control characters from names', () => {
    const evil = 'postrider_delivery_site_suspended_seconds{site="a\x1b[2Jb"} 1\n';
    expect(renderFrame(readings(evil, evil), OPTIONS).join('\n')).toContain('a\\x1b[2Jb');
  });

  it('uses colors only if they are enabled', () => {
    const colored = renderFrame(readings(text, text), { ...OPTIONS, color: true }).join('\n');
    expect(colored).toContain('\x1b[1m');
    expect(renderFrame(readings(text, text), OPTIONS).join('\n')).not.toContain('\x1b');
  });
});
