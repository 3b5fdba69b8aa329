async def health_check(settings):
    model_loaded = get_engine()._initialized
    return HealthResponse(
        status="healthy",
        version="1.0.0",
        model_loaded=model_loaded,
    )
