"""The Messages format of Anthropic, as callers and as providers speak it; also Claude on Vertex and Bedrock."""
