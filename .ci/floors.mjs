// The floors of the house: one list, from which the dependency rules and the picture in ARCHITECTURE.md are made.
import { readFileSync } from 'node:fs';

export const floors = JSON.parse(readFileSync(new URL('floors.json', import.meta.url), 'utf8')).map(
  ({ floor, rooms }) => ({ floor, rooms: Object.keys(rooms), notes: rooms }),
);

/** The picture, top floor first. */
export function drawFloors() {
  return floors
    .flatMap(({ floor, rooms, notes }) =>
      rooms.map((room, index) => {
        const name = room.endsWith('.ts') ? room : `${room}/`;
        return `${index === 0 ? `F${floor}` : '  '}  ${name.padEnd(12)}${notes[room]}`;
      }),
    )
    .join('\n');
}
