/** Drawing a region: a box, a circle or a polygon by pointer, or what the map shows. One at a time. */
import {
  TerraDraw,
  TerraDrawCircleMode,
  TerraDrawPolygonMode,
  TerraDrawRectangleMode,
  TerraDrawRenderMode,
} from 'terra-draw';
import { TerraDrawMapLibreGLAdapter } from 'terra-draw-maplibre-gl-adapter';
import type { WorldMap } from './map.ts';
import { boxFrom, boxOf, circleOf, polygonOf, type Region } from './regions.ts';

export type Tool = 'rectangle' | 'circle' | 'polygon' | 'view';

export class Drawing {
  private readonly draw: TerraDraw;
  private readonly world: WorldMap;
  private readonly drawn: (region: Region) => void;
  private readonly failed: (reason: string) => void;

  /** `drawn` is called with every finished region. Make it when the map is ready. */
  constructor(world: WorldMap, drawn: (region: Region) => void, failed: (reason: string) => void) {
    [this.world, this.drawn, this.failed] = [world, drawn, failed];
    this.draw = new TerraDraw({
      adapter: new TerraDrawMapLibreGLAdapter({ map: world.map }),
      modes: [
        new TerraDrawRectangleMode(),
        new TerraDrawCircleMode({ projection: 'globe' }),
        new TerraDrawPolygonMode(),
        new TerraDrawRenderMode({ modeName: 'still', styles: {} }),
      ],
    });
    this.draw.start();
    this.draw.setMode('still');
    this.draw.on('finish', (id) => this.finished(id));
  }

  begin(tool: Tool): void {
    this.clear();
    if (tool === 'view') {
      this.drawn(boxFrom(this.world.view()));
      return;
    }
    this.draw.setMode(tool);
    this.world.map.getCanvas().focus();
  }

  clear(): void {
    this.draw.setMode('still');
    this.draw.clear();
  }

  private finished(id: string | number): void {
    const feature = this.draw.getSnapshotFeature(id);
    if (feature?.geometry.type !== 'Polygon') return;
    const ring = feature.geometry.coordinates[0] ?? [];
    this.draw.setMode('still');
    try {
      const { mode, radiusKilometers } = feature.properties;
      if (mode === 'circle') this.drawn(circleOf(ring, Number(radiusKilometers)));
      else this.drawn(mode === 'rectangle' ? boxOf(ring) : polygonOf(ring));
    } catch (error) {
      this.clear();
      this.failed((error as Error).message);
    }
  }
}
